#!/bin/sh
# Plays a program that stays and speaks JSON line by line: it answers with the id of its process and the number of its turn, or
# with its arguments; it fails or leaves where the message says so.
arguments="$*"
turn=0
while IFS= read -r line; do
    turn=$((turn + 1))
    answer="$$ $turn"
    case "$line" in
    *leave*)
        # Its first argument, where there is one, is a file that counts how often it left.
        case "$1" in */*) echo left >> "$1" ;; esac
        exit 1
        ;;
    *fail*)
        echo '{"type":"result","is_error":true,"result":"no"}'
        continue
        ;;
    *arguments*) answer="$arguments" ;;
    esac
    echo 'this is no JSON'
    echo '{"type":"system","subtype":"init"}'
    echo '{"type":"stream_event","event":{"type":"content_block_delta","delta":{"type":"text_delta","text":"so "}}}'
    echo '{"type":"result","is_error":false,"result":"'"$answer"'","total_cost_usd":0.5,"usage":{"input_tokens":7,"output_tokens":3}}'
done
