"""The other implementation, started once; a test that needs it is skipped with a line that says what to install."""

from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def validators():
    from tests.differential.typescript_sdk import Missing, Validators, installed

    try:
        folder = installed()
    except Missing as missing:
        pytest.skip(str(missing))
    validators = Validators(folder)
    yield validators
    validators.close()
