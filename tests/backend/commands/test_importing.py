"""`burnish import` writes a spec that Burnish accepts, with remarks about the rest, or nothing at all."""

from pathlib import Path

from backend.contract import spec_file

COMMAND = (
    "python run_glue.py --model_name_or_path {model} --train_file train.csv --validation_file dev.csv --fsdp full_shard"
)


def test_the_written_spec_is_accepted(burnish, tmp_path: Path) -> None:
    out = tmp_path / "spec.yaml"
    done = burnish("import", "--command", COMMAND.format(model="bert"), "--script", "run_glue", "--output", out)
    assert done.returncode == 0, done.stderr
    assert "no counterpart: fsdp: full_shard" in done.stderr
    assert spec_file.read(out)["data"]["train"] == "train.csv"
    assert "#   fsdp: full_shard" in out.read_text()


def test_changes_are_laid_over(burnish, tmp_path: Path) -> None:
    done = burnish("import", "--command", COMMAND.format(model="bert"), "--set", "training.epochs=7")
    assert spec_file.parse(done.stdout)["training"]["epochs"] == 7


def test_a_shell_script_is_read(burnish, tmp_path: Path) -> None:
    script = tmp_path / "train.sh"
    script.write_text("#!/bin/sh\n" + COMMAND.format(model="bert") + "\n")
    assert spec_file.parse(burnish("import", script).stdout)["model"]["name_or_path"] == "bert"


def test_a_setting_that_burnish_refuses_leaves_nothing(burnish, tmp_path: Path) -> None:
    out = tmp_path / "spec.yaml"
    done = burnish("import", "--command", COMMAND.format(model="bert") + " --learning_rate 900", "--output", out)
    assert done.returncode == 2
    assert "training.learning_rate" in done.stderr
    assert not out.exists()


def test_a_stranger_is_one_sentence(burnish, tmp_path: Path) -> None:
    path = tmp_path / "other.yaml"
    path.write_text("a: 1\n")
    done = burnish("import", path)
    assert done.returncode == 2
    assert "neither a Determined experiment" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_file_is_never_overwritten(burnish, tmp_path: Path) -> None:
    out = tmp_path / "spec.yaml"
    out.write_text("mine")
    done = burnish("import", "--command", COMMAND.format(model="bert"), "--output", out)
    assert done.returncode == 2
    assert out.read_text() == "mine"


ACCELERATE = "compute_environment: LOCAL_MACHINE\ndistributed_type: MULTI_CPU\nmixed_precision: 'no'\nnum_processes: 2\nuse_cpu: true\n"


def test_a_file_of_accelerate_config_becomes_a_part_that_a_spec_includes(burnish, tmp_path: Path) -> None:
    (tmp_path / "default_config.yaml").write_text(ACCELERATE)
    done = burnish("import", tmp_path / "default_config.yaml", "--output", tmp_path / "two.yaml")
    assert done.returncode == 0, done.stderr
    (tmp_path / "spec.yaml").write_text("include: [preset:glue-sst2, two.yaml]\n")
    assert spec_file.read(tmp_path / "spec.yaml")["hardware"]["processes"] == 2


def test_the_file_with_which_a_script_was_launched_counts_its_processes(burnish, tmp_path: Path) -> None:
    (tmp_path / "default_config.yaml").write_text(ACCELERATE)
    done = burnish(
        "import", "--command", COMMAND.format(model="bert"), "--accelerate", tmp_path / "default_config.yaml"
    )
    assert spec_file.parse(done.stdout)["training"]["batch_size"] == 16


def test_a_launcher_that_is_none_is_refused(burnish, tmp_path: Path) -> None:
    (tmp_path / "other.yaml").write_text("a: 1\n")
    done = burnish("import", "--command", COMMAND.format(model="bert"), "--accelerate", tmp_path / "other.yaml")
    assert done.returncode == 2
    assert "was not written by accelerate config" in done.stderr
