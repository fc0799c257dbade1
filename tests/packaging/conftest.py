import pytest

from tests.packaging.building import TIME, copied, distributions


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    """The sdist and the wheel of a copy of the sources."""
    folder = tmp_path_factory.mktemp("built")
    return distributions.build(copied(folder / "source"), folder / "dist", time=TIME)
