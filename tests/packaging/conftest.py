import pytest

from tests.packaging.building import TIME, copied, distributions

REPOSITORY = "https://git.example/accord"


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    """The sdists and the wheels of a copy of the sources."""
    folder = tmp_path_factory.mktemp("built")
    return distributions.build(copied(folder / "source"), folder / "dist", time=TIME, repository=REPOSITORY)


@pytest.fixture(scope="session")
def wheels(built):
    """The wheel of each package by its name."""
    return dict(zip(distributions.PACKAGES, built[1::2], strict=True))
