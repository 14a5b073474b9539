"""Templates that loop or fill memory are ended, and the process that renders them serves all and ends with who started it."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing

import pytest

from backend import process_tree
from backend.models.chat_rendering import RenderedChat, Renderer, RenderRequest, TemplateRefusal

ROLES = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}"
HELLO = RenderRequest([{"role": "user", "content": "hello"}])
LOOP = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"


@pytest.fixture(scope="module")
def renderer() -> Iterator[Renderer]:
    one = Renderer(seconds=0.5)
    yield one
    one.close()


def workers() -> set[int]:
    """Their process numbers."""
    return {
        one.pid
        for one in process_tree.processes()
        if one.parent == os.getpid() and "backend.models.chat_rendering" in one.command
    }


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        (LOOP, "not finish within 0.5 seconds"),
        ("{{ (9 + (messages | length)) ** (10 ** 9) }}", "not finish within 0.5 seconds"),
        ("{{ 'x' * 10 ** 10 }}", "more than 1 GB of memory"),
        (
            "{% set ns = namespace(x='x') %}{% for a in range(40) %}{% set ns.x = ns.x + ns.x %}{% endfor %}",
            "memory|did not finish",
        ),
        ("{{ messages[0].content * 2000001 }}", "writes more than 2,000,000 characters"),
    ],
    ids=["loop", "loop in C", "string", "doubled", "output"],
)
def test_limit_ends_a_template_and_the_next_is_rendered(renderer: Renderer, template: str, reason: str):
    if "memory" in reason and sys.platform != "linux":
        pytest.skip("only Linux limits a process's memory")
    fine = RenderRequest([{"role": "user", "content": "x"}])
    with pytest.raises(TemplateRefusal, match=reason) as refused:
        renderer.render("{% if messages[0].content == 'x' %}" + template + "{% endif %}", {}, [HELLO, fine, HELLO])
    assert refused.value.position == 1
    assert renderer.render(ROLES, {}, [HELLO]) == [RenderedChat("<user>hello", ())]


def test_refusal_says_which_chat_and_leaves_the_next_question_its_own_answer(renderer: Renderer):
    chats = [RenderRequest([{"role": "user", "content": word}]) for word in ("a", "bad", "c")]
    template = "{% if messages[0].content == 'bad' %}\n{{ raise_exception('no') }}{% endif %}{{ messages[0].content }}"
    with pytest.raises(TemplateRefusal) as refused:
        renderer.render(template, {}, chats)
    assert (refused.value.position, refused.value.line) == (1, 2)
    assert [one.text for one in renderer.render(template, {}, [chats[2], chats[0]])] == ["c", "a"]


def test_one_process_renders_all_and_none_before_it_is_needed():
    before = workers()
    with closing(Renderer()) as renderer:
        assert renderer.render(ROLES, {}, []) == []
        assert workers() == before
        renderer.render(ROLES, {}, [HELLO])
        (only,) = workers() - before
        renderer.render(ROLES + "{{ eos_token }}", {"eos_token": "</s>"}, [HELLO] * 3)
        assert workers() - before == {only}
    assert workers() == before


def test_beginnings_end_where_the_text_goes_on(renderer: Renderer):
    said = [{"role": role, "content": "é\ud83d" * 3} for role in ("user", "assistant", "user")]
    prefixes = [(1, True), (2, False), (1, False)]
    (found,) = renderer.render(ROLES, {}, [RenderRequest(said, True, prefixes)])
    texts = [
        renderer.render(ROLES, {}, [RenderRequest(said[:number], prompt)])[0].text for number, prompt in prefixes
    ]  # fmt: skip
    assert found.ends == tuple(map(len, texts))
    assert all(found.text.startswith(text) for text in texts)
    assert renderer.render("{{ messages | length }}", {}, [RenderRequest(said, False, [(1, False)])])[0].ends == (None,)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows has no forks")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_fork_takes_a_process_of_its_own(renderer: Renderer):
    renderer.render(ROLES, {}, [HELLO])
    child = os.fork()
    if child == 0:
        try:
            found = renderer.render(ROLES, {}, [HELLO])[0].text
            renderer.close()
            os._exit(0 if found == "<user>hello" else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert renderer.render(ROLES, {}, [HELLO])[0].text == "<user>hello"


@pytest.mark.skipif(sys.platform == "win32", reason="its processes are listed otherwise")
def test_process_ends_with_who_started_it_even_in_a_loop():
    code = (
        "import sys; from backend.models.chat_rendering import *; one = Renderer(1)\n"
        "one.render('x', {}, [RenderRequest([{'role': 'user', 'content': 'x'}])])\n"
        "print(one._process.pid, flush=True); one.render(sys.argv[1], {}, [RenderRequest([{'role': 'user', 'content': 'x'}])])"
    )
    process = subprocess.Popen([sys.executable, "-c", code, LOOP], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout
    with process.stdout as said:
        worker = json.loads(said.readline())
        process.kill()
        process.wait()
    deadline = 600
    while deadline and any(one.pid == worker for one in process_tree.processes()):
        deadline -= 1
        _pause()
    assert deadline, "it outlived the process that started it"


def _pause() -> None:
    """A moment in which another process may end."""
    subprocess.run([sys.executable, "-c", ""], check=True)
