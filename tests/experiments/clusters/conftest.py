import pytest
from real_commands import end_all


@pytest.fixture(autouse=True)
def no_process_outlives_its_test():
    yield
    end_all()
