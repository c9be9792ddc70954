import pytest

from tests.references.real_commands import end_all


@pytest.fixture(autouse=True)
def no_process_outlives_its_test():
    yield
    end_all()
