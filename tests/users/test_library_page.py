"""docs/library.md is run as it stands, from top to bottom; what it logs to is replaced by stand-ins."""

import re
import sys
from pathlib import Path
from unittest.mock import MagicMock

PAGE = (Path(__file__).parents[2] / "docs" / "library.md").read_text()


def test_every_block_of_the_page_runs_after_those_before_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    board, wandb, mlflow = MagicMock(), MagicMock(), MagicMock()
    modules = {"torch": MagicMock(), "torch.utils": MagicMock(), "torch.utils.tensorboard": board}
    for name, module in (modules | {"wandb": wandb, "mlflow": mlflow}).items():
        monkeypatch.setitem(sys.modules, name, module)
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert blocks
    names = {"__name__": "__main__"}
    for number, block in enumerate(blocks):
        exec(compile(block, f"docs/library.md, block {number}", "exec"), names)

    scalars = board.SummaryWriter.return_value.__enter__.return_value.add_scalar.call_args_list
    assert [call.args[2] for call in scalars if call.args[0] == "value"] == list(range(1, 21))
    sent = wandb.init.return_value.__enter__.return_value.log.call_args_list
    assert [call.kwargs["step"] for call in sent] == list(range(1, 21))
    logged = mlflow.log_metrics.call_args_list
    assert [call.args[0]["value"] for call in logged] == [call.args[0]["value"] for call in sent]  # the same seed
    assert Path(mlflow.log_artifact.call_args.args[0]).is_file()
