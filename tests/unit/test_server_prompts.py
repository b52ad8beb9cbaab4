"""Facts about the tokens of prompts, by the demo checkpoint: it has three for a Chinese character."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from imageedit_server.api.prompts import check_tokens, token_count
from imageedit_server.engine.checkpoint import resolve_model_dir
from imageedit_server.errors import InvalidInput

DEMO = resolve_model_dir("demo")


def counted(text: str) -> int:
    count = token_count(DEMO)
    assert count is not None
    return count(text)


def never(text: str) -> int:
    raise AssertionError(f"{len(text)} characters were counted")


@given(st.text(max_size=200))
def test_a_text_never_has_more_tokens_than_bytes(text: str) -> None:
    check_tokens(text, "prompt", limit=counted(text), count=counted)
    tokens = counted(text)
    if tokens > 0:
        with pytest.raises(InvalidInput):
            check_tokens(text, "prompt", limit=tokens - 1, count=counted)


def test_a_text_that_surely_fits_is_not_counted() -> None:
    check_tokens("x" * 1024, "prompt", limit=1024, count=never)
    check_tokens("背" * 341, "prompt", limit=1024, count=never)


def test_a_text_of_many_bytes_and_few_tokens_is_taken() -> None:
    check_tokens("make the background blue " * 100, "prompt", limit=1024, count=counted)


def test_a_text_of_too_many_tokens_is_refused_with_both_numbers() -> None:
    with pytest.raises(InvalidInput, match=r"prompt has 1200 tokens; at most 1024") as raised:
        check_tokens("背" * 400, "prompt", limit=1024, count=counted)

    assert (raised.value.code, raised.value.param) == ("prompt_too_long", "prompt")


def test_the_processor_s_tokenizer_serves_where_the_other_is_in_several_files(tmp_path: Path) -> None:
    (tmp_path / "processor").mkdir()
    (tmp_path / "processor" / "tokenizer.json").write_bytes((DEMO / "tokenizer" / "tokenizer.json").read_bytes())
    count = token_count(tmp_path)

    assert count is not None
    assert count("make it blue") == counted("make it blue")


@pytest.mark.parametrize("content", [None, b"", b"{}", b"\xff"])
def test_without_a_tokenizer_that_can_be_read_the_worker_counts(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "tokenizer").mkdir()
        (tmp_path / "tokenizer" / "tokenizer.json").write_bytes(content)

    assert token_count(tmp_path) is None


def test_a_path_that_the_file_system_refuses_is_left_to_the_worker(tmp_path: Path) -> None:
    assert token_count(tmp_path / ("a" * 300)) is None


def test_counting_loads_neither_torch_nor_transformers() -> None:
    code = (
        "import sys; from pathlib import Path; from imageedit_server.api.prompts import token_count;"
        " count = token_count(Path(sys.argv[1])); assert count; count('make it blue');"
        " print({'torch', 'transformers', 'numpy'} & set(sys.modules))"
    )
    run = subprocess.run([sys.executable, "-c", code, str(DEMO)], check=True, capture_output=True, text=True)

    assert run.stdout.strip() == "set()"
