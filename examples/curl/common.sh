# What the examples share: sourced, not run. `API` and `API_KEY` as in the README.
set -euo pipefail
API=${API:-http://127.0.0.1:3000}
if [ -z "${AUTH:=${API_KEY:+X-API-Key: $API_KEY}}" ]; then
  echo "Set API_KEY to a key of yours, as in the README's five minutes." >&2
  exit 1
fi

# field <expression>: reads JSON from the standard input, and prints a part of it: field .status, field '[0].amount'
field() { node -p "const json = JSON.parse(require('fs').readFileSync(0)); json$1"; }

# Names this run in the keys of what it creates. To finish a run that failed, give its name to the next one.
RUN=${RUN:-$(node -p 'crypto.randomUUID()')}
trap 'echo "To continue without creating anything twice: RUN=$RUN bash $0" >&2' ERR
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# These do not pass by waiting.
LASTING='"code":"(quota_exceeded|launch_gates_closed|local_sandbox_only|provider_not_configured|remote_environment)"'

# call <method> <path> [body] [curl's options …]: prints the body, also of a refusal. Only a read and a request with an
# Idempotency-Key are repeated, for 60 s: after a lost connection, 429, and while the service is unavailable.
call() {
  local method=$1 path=$2 body=${3:-} status asked pause=1 end=$((SECONDS + 60))
  shift $(($# < 3 ? $# : 3))
  while true; do
    : >"$folder/headers" >"$folder/answer"
    # The credential comes from a file, because other users can see the arguments of a process.
    status=$(curl -sS -X "$method" "$API$path" -H @<(printf '%s' "$AUTH") -o "$folder/answer" -D "$folder/headers" \
      -w '%{http_code}' ${body:+-H 'Content-Type: application/json' -d "$body"} "$@") || status=000
    if ! [[ $status =~ ^(000|429|50[234])$ ]] || grep -Eq "$LASTING" "$folder/answer"; then break; fi
    if [ "$method" != GET ] && [[ "$*" != *Idempotency-Key* ]]; then break; fi
    asked=$(sed -n 's/^retry-after: \([0-9]*\).*/\1/Ip' "$folder/headers")
    if ((SECONDS + ${asked:-$pause} > end)); then break; fi
    sleep "${asked:-$pause}"
    pause=$((pause * 2))
  done
  echo "$status" >"$folder/status"
  cat "$folder/answer"
  [ "$status" != 000 ]
}

# create <path> <body> <key>: fails unless it is created, now or by an earlier request with this key
create() {
  call POST "$1" "$2" -H "Idempotency-Key: $3"
  [[ $(<"$folder/status") = 2* ]] || { echo "not created: $(<"$folder/answer")" >&2 && return 1; }
}

# wait_for <path> <test>: reads until the test of `json` is true; the API holds each read for up to 2 s
wait_for() {
  local json
  for _ in $(seq 60); do
    json=$(call GET "$1" '' -H 'Prefer: wait=2')
    if [ "$(field "; $2" <<<"$json")" = true ]; then
      printf '%s' "$json"
      return
    fi
    sleep 0.2
  done
  echo "not in time: $json" >&2
  return 1
}

ENDED="['settled', 'rejected', 'expired', 'failed', 'canceled'].includes(json.status)"
BANK='{"bank_name":"Example Bank of Jamaica","account_number":"004512378","currency":"JMD"}'
RECIPIENT='"entity_type":"individual","name":"Marcia Brown","country":"JM","bank_details":'$BANK

# card <recipient> <token> [amount] [more fields]: the body of a settlement by card
card() {
  echo '{"corridor":"US-JM","amount":"'"${3:-250.00}"'","recipient_id":"'"$1"'","payment_method":"card",' \
    '"payout_rail":"bank_transfer","card_token":"'"$2"'"'"${4:-}"'}'
}
