#!/usr/bin/env bash
# A session with an agent: one turn that is waited for, one that is read as it comes, and what was said.
#
# Usage: session.sh URL [TOKEN]. Needs curl.
set -euo pipefail
url=${1%/}
agent=concise-de
who=(-H "SPASS-User-Id: ann" -H "Content-Type: application/json")
[ -z "${2:-}" ] || who+=(-H "Authorization: Bearer $2")
ask() { curl -fsS "${who[@]}" "$@"; }
# The text of a field, of JSON on one line.
field() { sed -n "s/.*\"$1\":\"\\([^\"]*\\)\".*/\\1/p"; }

sessions=$url/a1/agents/$agent/sessions
session=$sessions/$(ask -X POST "$sessions" -d '{}' | field id)

# Whoever sends a message again under the same X-Request-Id gets the answer of the first time.
printf '%b\n' "$(ask -H "X-Request-Id: lamp-1-$$" "$session/messages" -d '{"message": "Was ist eine Laterne?"}' | field content)"

event=""
ask -N "$session/messages/stream" -d '{"message": "Und wozu braucht man sie?"}' | while IFS= read -r line; do
  case $line in
    "event: "*) event=${line#event: } ;;
    "data: "*)
      case $event in
        token) printf '%b' "$(field delta <<<"$line")" ;;
        # What came before a call of a tool was no answer.
        token-reset) echo ;;
        error) echo "the agent failed: $line" >&2 && exit 1 ;;
      esac
      ;;
  esac
done
echo

echo "$(ask "$session/messages" | grep -o '"role":' | wc -l) messages"
ask -X DELETE "$session"
