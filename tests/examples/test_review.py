"""The review job: a coding agent with a model of the test's own reads a repository, and its findings are data."""

import json
import os
import re
import shlex
import subprocess
import sys

import pytest
from interop.model.replies import ToolCall, Words
from interop.model.server import ModelServer

from tests.examples.conftest import EXAMPLES

REVIEW = EXAMPLES / "review" / "review.py"
OLD, NEW = "def total(items):\n    return sum(items)\n", "def total(items):\n    return sum(items[1:])\n"


class Model:
    """Says what is next in a list, and keeps what it was asked; a name after the tool's server is enough for a tool."""

    def __init__(self, *entries):
        self.entries = list(entries)
        self.results = []

    def __call__(self, asked):
        for piece in self.entries.pop(0) if self.entries else ["Done."]:
            if isinstance(piece, str):
                yield Words(piece)
            else:
                name, arguments = piece
                yield ToolCall(next(it for it in asked.tools if it == name or it.endswith(f"_{name}")), arguments)


def finding(line=2, severity="error", title="The first item is lost", message="items[1:] drops it.", file="total.py"):
    return "report_finding", {
        "file": file,
        "line": line,
        "severity": severity,
        "title": title,
        "message": message,
    }


def git(folder, *arguments):
    names = {f"GIT_{who}_{what}": "test@example.com" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    command = ["git", "-c", "init.defaultBranch=main", "-c", "commit.gpgsign=false", *arguments]
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, **names}, check=False, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path):
    """A repository with a change from `main` to `work`."""
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "--quiet")
    (folder / "total.py").write_text(OLD)
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", "Begin")
    git(folder, "checkout", "--quiet", "-b", "work")
    (folder / "total.py").write_text(NEW)
    git(folder, "commit", "--quiet", "-a", "-m", "Change")
    return folder


@pytest.fixture
def review(repository, tmp_path):
    """Runs the review with a model; returns how it ended. `review.bodies` has what the model was asked."""

    def review(model, *options, change=("main...work",), env=None, mode="ask", agent=None):
        with ModelServer(reply=model) as server:
            flags = ["--api", "openai", "--model", "fake", "--base-url", f"{server.url}/v1", "--mode", mode]
            agent = agent or [sys.executable, "-m", "accord", "agent", *flags]
            command = [sys.executable, str(REVIEW), *change, *options, "--", *agent]
            keys = {"OPENAI_API_KEY": "none", "GITHUB_STEP_SUMMARY": "", **(env or {})}
            done = subprocess.run(
                command,
                cwd=repository,
                env={key: value for key, value in {**os.environ, **keys}.items() if value},
                capture_output=True,
                text=True,
                check=False,
                timeout=100,
            )
            review.bodies = server.bodies
        return done

    return review


def told(review):
    """All that the model was told by tools."""
    return [it["content"] for it in review.bodies[-1]["messages"] if it["role"] == "tool"]


def test_a_finding_is_printed_and_decides_about_the_exit_code(review, repository):
    model = Model([("read_file", {"path": str(repository / "total.py")})], [finding()])
    done = review(model)
    assert (done.returncode, done.stdout) == (1, "total.py:2: error: The first item is lost\n"), done.stderr
    assert "-    return sum(items)\n+    return sum(items[1:])" in json.dumps(review.bodies[0]).replace("\\n", "\n")
    assert "items[1:]" in told(review)[0]
    assert told(review)[1] == "Taken."


def test_the_severity_that_fails_is_chosen(review):
    assert review(Model([finding(severity="warning")])).returncode == 0
    assert review(Model([finding(severity="warning")]), "--fail-on", "warning").returncode == 1
    assert review(Model(["All is well."])).returncode == 0


def test_a_finding_outside_of_the_change_is_handed_back_to_the_agent(review):
    done = review(Model([finding(file="other.py")], [finding(line=1)], [finding(severity="fatal")]))
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert told(review)[0] == "Not taken: other.py is not in the change, which has total.py."
    assert told(review)[1] == "Not taken: line 1 of total.py is not in the change; the nearest that is has number 2."
    assert "severity" in told(review)[2]


def test_annotations_cannot_give_the_runner_commands(review, tmp_path):
    hostile = finding(title="a,b::c", message="one\n::add-mask::x%", severity="notice")
    done = review(Model([hostile]), env={"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md")})
    place = "::notice file=total.py,line=2,title=a%2Cb%3A%3Ac"
    assert done.stdout == f"{place}::one%0A::add-mask::x%25\n", done.stderr
    assert "| notice | total.py:2 | **a,b::c** <br> one ::add-mask::x% |" in (tmp_path / "summary.md").read_text()


def test_the_summary_has_no_markdown_of_the_agent(review, tmp_path):
    hostile = finding(title="x | y", message="<img src=x> ![a](https://b)\n| new row |")
    review(Model([hostile]), "--summary", str(tmp_path / "summary.md"))
    text = (tmp_path / "summary.md").read_text()
    assert "<img" not in text
    assert "![" not in text
    assert len(text.splitlines()) == 7


def test_the_agent_may_not_write_and_not_run(review, repository):
    calls = [
        ("write_file", {"path": str(repository / "total.py"), "text": "gone"}),
        ("run_command", {"command": "touch made"}),
    ]
    done = review(Model(calls, [finding()]))
    assert done.returncode == 1, done.stderr
    assert (repository / "total.py").read_text() == NEW
    assert not (repository / "made").exists()


def test_a_review_of_an_agent_that_changes_files_is_not_used(review, repository):
    done = review(Model([("run_command", {"command": "touch made"})], [finding()]), mode="auto")
    assert (done.returncode, done.stdout) == (2, "")
    assert "the agent changed files of this folder" in done.stderr


def test_a_patch_file_is_reviewed(review, repository, tmp_path):
    (tmp_path / "change.patch").write_text(git(repository, "diff", "main...work") + "\n")
    done = review(Model([finding()]), change=("--patch", str(tmp_path / "change.patch")))
    assert done.stdout.startswith("total.py:2: error:"), done.stderr


@pytest.mark.parametrize(
    ("change", "agent", "why"),
    [
        (("main...gone",), None, "main...gone"),
        (("--patch", "missing.patch"), None, "missing.patch"),
        (("main...work",), ["no-such-agent"], "no-such-agent"),
        (("main...work",), [sys.executable, "-c", "print('::error::x')"], "review: "),
    ],
)
def test_without_a_review_the_exit_code_is_2_and_the_last_line_says_why(review, change, agent, why):
    done = review(Model(), change=change, agent=agent)
    assert (done.returncode, done.stdout) == (2, "")
    *before, last = done.stderr.splitlines()
    assert last.startswith("review: ")
    assert why in last
    assert not [line for line in before if line.startswith("::")]


def test_the_lines_of_a_change_are_those_that_it_adds():
    script = "from changes import Changes; import json, sys; "
    script += "print(json.dumps({k: sorted(v) for k, v in Changes.of(sys.stdin.read()).lines.items()}))"
    diff = """\
--- a/one.txt
+++ b/one.txt
@@ -1,3 +1,4 @@
 same
--- removed
+++ added
+second
 same
\\ No newline at end of file
@@ -9 +10 @@
-old
+new
--- a/gone.txt
+++ /dev/null
@@ -1 +0,0 @@
-x
"""
    command = [sys.executable, "-c", script]
    done = subprocess.run(
        command, cwd=REVIEW.parent, input=diff, capture_output=True, text=True, check=True, timeout=60
    )
    assert json.loads(done.stdout) == {"one.txt": [2, 3, 10]}


def test_the_workflow_s_step_reviews_with_the_program_of_the_base(repository, tmp_path):
    """The step's own lines, as a runner gives them to bash."""
    page = (EXAMPLES / "review" / "workflow.yml").read_text()
    step = re.search(r"        run: \|\n(?P<lines>(?: {10}.*\n)+)", page)["lines"]
    git(repository, "checkout", "--quiet", "main")
    tools = repository / ".github" / "review"
    tools.mkdir(parents=True)
    for file in REVIEW.parent.glob("*.py"):
        (tools / file.name).write_text(file.read_text())
    git(repository, "add", ".")
    git(repository, "commit", "--quiet", "-m", "Review")
    git(repository, "checkout", "--quiet", "work")
    git(repository, "rebase", "--quiet", "main")
    (tools / "review.py").write_text("raise SystemExit('the program of the pull request')")
    git(repository, "commit", "--quiet", "-a", "-m", "Approve everything")
    with ModelServer(reply=Model([finding()])) as server:
        flags = ["--api", "openai", "--model", "fake", "--base-url", f"{server.url}/v1"]
        env = {
            **os.environ,
            "BASE": git(repository, "rev-parse", "main"),
            "REVIEWER": shlex.join([sys.executable, "-m", "accord", "agent", *flags]),
            "OPENAI_API_KEY": "none",
            "RUNNER_TEMP": str(tmp_path),
            "GITHUB_ACTIONS": "true",
            "PATH": f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}",  # noqa: PTH120
        }
        command = ["bash", "-e", "-c", step]
        done = subprocess.run(
            command, cwd=repository, env=env, capture_output=True, text=True, check=False, timeout=100
        )
    assert done.returncode == 1, done.stderr
    assert done.stdout.startswith("::error file=total.py,line=2,")
