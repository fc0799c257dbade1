"""Sending messages to an agent that the inspector has started: by a form of the page, and by nobody else."""

import json
import sys

import pytest

from tests.inspector.conftest import fetch
from tests.inspector.test_page import has, is_quiet

AGENT = ("--send", "--", sys.executable, "-m", "accord", "demo")


@pytest.fixture
def page(show):
    page = show(*AGENT)
    has(page, "session/new", ".send")
    return page


def choose(page, method):
    page.evaluate(
        "(() => { const it = document.querySelector('.send select'); "
        f"it.value = [...it.options].findIndex((option) => option.text === {json.dumps(method)}); "
        "it.dispatchEvent(new Event('change')); })()"
    )


def put(page, selector, text):
    page.evaluate(
        f"(() => {{ const it = document.querySelector({json.dumps(selector)}); it.value = {json.dumps(text)}; "
        "it.dispatchEvent(new Event('input')); })()"
    )


def params(page):
    return json.loads(page.evaluate("document.querySelector('textarea').value"))


def test_a_form_sends_requests_whose_answers_become_rows(page):
    page.click("[type=submit]")
    has(page, "session/new: answered", ".answer")
    page.until("document.querySelector('.list').innerText.includes('session/new \u2713')")
    page.until("document.querySelector('#status').innerText.includes('1 session')")
    choose(page, "session/prompt")
    assert params(page)["sessionId"]
    page.click("[type=submit]")
    has(page, "session/prompt: answered", ".answer")
    page.until("document.querySelector('.list').innerText.includes('session/prompt \u2713')")
    is_quiet(page)


def test_fields_and_json_are_one_message(page):
    put(page, "[name=cwd]", "/elsewhere")
    assert params(page)["cwd"] == "/elsewhere"
    put(page, "textarea", '{"cwd": "/a", "mcpServers": [], "additionalDirectories": ["/b"]}')
    assert page.evaluate("document.querySelector('[name=cwd]').value") == "/a"
    assert page.evaluate("document.querySelector('[name=additionalDirectories]').value") == '["/b"]'
    put(page, "textarea", "{")
    assert page.evaluate("document.querySelector('[type=submit]').disabled")
    has(page, "not a JSON object", ".answer")


@pytest.mark.parametrize(
    ("method", "name", "text", "sent"),
    [
        ("session/prompt", "prompt", "What is 2 [two]?", [{"type": "text", "text": "What is 2 [two]?"}]),
        ("session/prompt", "prompt", "42", [{"type": "text", "text": "42"}]),
        ("session/prompt", "prompt", '{"type": "text", "text": "x"}', [{"type": "text", "text": "x"}]),
        ("session/prompt", "prompt", '[{"type": "text", "text": "x"}]', [{"type": "text", "text": "x"}]),
        ("session/set_config_option", "value", "full", "full"),
        ("session/set_config_option", "value", "7", "7"),
        ("session/set_config_option", "value", "true", True),
        ("session/new", "mcpServers", "[]", []),
    ],
)
def test_a_field_takes_what_its_param_wants(page, method, name, text, sent):
    choose(page, method)
    put(page, f"[name={name}]", text)
    assert params(page)[name] == sent
    assert page.evaluate("document.querySelector('[type=submit]').disabled") is False


@pytest.mark.parametrize(
    ("method", "name", "text", "said"),
    [
        ("session/prompt", "prompt", '[{"type": "te', "This must be JSON: a list, [ … ]"),
        ("session/new", "additionalDirectories", "/b", "This must be JSON: a list, [ … ]"),
        ("session/new", "mcpServers", "{}", "This must be JSON: a list, [ … ]"),
        ("session/new", "systemPrompt", "Be brief", "This must be JSON: an object, { … }"),
    ],
)
def test_a_field_refuses_what_its_param_cannot_be(page, method, name, text, said):
    choose(page, method)
    put(page, f"[name={name}]", text)
    assert page.evaluate(f"document.querySelector('[name={name}]').nextSibling.innerText") == said
    assert page.evaluate("document.querySelector('[type=submit]').disabled")
    put(page, f"[name={name}]", "")
    assert page.evaluate(f"document.querySelector('[name={name}]').nextSibling.innerText") == ""
    assert page.evaluate("document.querySelector('[type=submit]').disabled") is False


def test_an_error_of_the_agent_is_shown(page):
    choose(page, "session/load")
    put(page, "textarea", '{"sessionId": "gone", "cwd": "/", "mcpServers": []}')
    page.click("[type=submit]")
    has(page, "session/load: -32002", ".answer")


@pytest.mark.parametrize(
    ("more", "status"),
    [
        ({}, 401),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Authorization": "TOKEN", "Origin": "http://evil.example"}, 403),
        ({"Authorization": "TOKEN", "Host": "evil.example"}, 421),
        ({"Authorization": "TOKEN", "Content-Type": "text/plain"}, 415),
    ],
)
async def test_only_the_page_itself_may_send(inspect, more, status):
    url, token = inspect(*AGENT).split("#")
    headers = {name: value.replace("TOKEN", f"Bearer {token}") for name, value in more.items()}
    found = await fetch(url, "/api/agent", method="POST", headers={"Content-Length": "0", **headers})
    assert found[0] == status


async def test_an_inspector_of_files_sends_nothing(inspect, recording):
    recording.opening()
    url, token = inspect(recording.path).split("#")
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json", "Content-Length": "0"}
    assert (await fetch(url, "/api/agent", method="POST", headers=headers))[0] == 405
    assert (await fetch(url, "/api/agent", headers=headers))[2] == b"null"
