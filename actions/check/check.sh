# The check of action.yml: its inputs are variables, so that no input is read as a part of the script.
set -euo pipefail

mkdir -p "$CHECK_REPORTS"
options=(--profile "$CHECK_PROFILE" --protocol "$CHECK_PROTOCOL")
options+=(--trace "$CHECK_REPORTS/trace.jsonl" --report "$CHECK_REPORTS/report.json")
options+=(--junit "$CHECK_REPORTS/junit.xml" --sarif "$CHECK_REPORTS/check.sarif")
options+=(--html "$CHECK_REPORTS/report.html" --markdown "$CHECK_REPORTS/summary.md")
if [ -n "$CHECK_PROMPTS" ]; then options+=(--prompts "$CHECK_PROMPTS"); fi
if [ -n "$CHECK_EXPECT" ]; then options+=(--expect "$CHECK_EXPECT"); fi
if [ -n "$CHECK_REQUIREMENTS" ]; then options+=(--requirements "$CHECK_REQUIREMENTS"); fi
if [ -n "$CHECK_SCHEMA" ]; then options+=(--schema "$CHECK_SCHEMA"); fi
if [ "$CHECK_STRICT" = true ]; then options+=(--strict); fi

# The agent is one input: it is divided into words as a shell would, and nothing in it is run.
agent=()
while IFS= read -r -d '' word; do agent+=("$word"); done < <(
  CHECK_AGENT="$CHECK_AGENT" python3 -c '
import os, shlex, sys
sys.stdout.write("".join(word + "\0" for word in shlex.split(os.environ["CHECK_AGENT"])))'
)

code=0
accord check agent "${options[@]}" -- "${agent[@]}" || code=$?
if [ -n "${GITHUB_STEP_SUMMARY:-}" ] && [ -f "$CHECK_REPORTS/summary.md" ]; then
  cat "$CHECK_REPORTS/summary.md" >> "$GITHUB_STEP_SUMMARY"
fi
exit "$code"
