from omdpd.solvers.compiled.cache import forget_stale


def test_machine_code_is_forgotten_when_any_source_changes_and_kept_otherwise(tmp_path):
    (tmp_path / "__pycache__").mkdir()
    stamp, code = tmp_path / "__pycache__" / "stamp", tmp_path / "__pycache__" / "solve.f-1.py311.nbi"
    source = tmp_path / "inner.py"
    source.write_text("x = 1\n")
    code.write_bytes(b"of another version")
    assert forget_stale(tmp_path, stamp)
    assert not code.exists()
    code.write_bytes(b"fresh")
    assert not forget_stale(tmp_path, stamp)
    assert code.exists()
    source.write_text("x = 22\n")
    assert forget_stale(tmp_path, stamp)
    assert not code.exists()
