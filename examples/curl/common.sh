# What the examples share: sourced, not run. `API` and `API_KEY` as in the README.
set -euo pipefail
API=${API:-http://127.0.0.1:3000}
if [ -z "${AUTH:=${API_KEY:+X-API-Key: $API_KEY}}" ]; then
  echo "Set API_KEY to a key of yours, as in the README's five minutes." >&2
  exit 1
fi

# field <expression>: reads JSON from the standard input, and prints a part of it: field .status, field '[0].amount'
field() { node -p "const json = JSON.parse(require('fs').readFileSync(0)); json$1"; }

# call <method> <path> [body] [curl's options …]: prints the body, also of a refusal. Only a read and a request with an
# Idempotency-Key are repeated, after a lost connection, 429 or 503; curl honours Retry-After.
call() {
  local method=$1 path=$2 body=${3:-} retry=()
  shift $(($# < 3 ? $# : 3))
  if [ "$method" = GET ] || [[ "$*" = *Idempotency-Key* ]]; then
    retry=(--retry 8 --retry-all-errors --retry-max-time 60)
  fi
  # The credential comes from a file, because other users can see the arguments of a process.
  curl -sS "${retry[@]}" -X "$method" "$API$path" -H @<(printf '%s' "$AUTH") \
    ${body:+-H 'Content-Type: application/json' -d "$body"} "$@"
}

# create <path> <body>: with a key of its own
create() { call POST "$1" "$2" -H "Idempotency-Key: $(node -p 'crypto.randomUUID()')"; }

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
