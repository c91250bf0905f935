#!/usr/bin/env bash
# Subscribes, settles, and prints the events of the settlement in their order, which need not be that of arrival. Curl
# receives nothing, so `npm run sandbox -- listen` does: it verifies what comes, and prints it as JSON.
source "$(dirname "$0")/common.sh"

port=${PORT:-4400}
[ "$port" = 0 ] && port=$(node -e "const s = require('net').createServer().listen(0, () => { console.log(s.address().port); s.close() })")
node --import tsx scripts/sandbox.ts listen --port "$port" --url "$API" --json >"$folder/received" 2>"$folder/log" &
listener=$!
trap 'kill "$listener" && wait "$listener"; rm -rf "$folder"' EXIT

# until_true <command …>
until_true() {
  for _ in $(seq 150); do
    if "$@"; then return; fi
    sleep 0.2
  done
  echo "not in time: $(cat "$folder/log")" >&2
  return 1
}

until_true grep -q '^Listening' "$folder/log"
recipient=$(create /v1/recipients "{\"kind\":\"contractor\",$RECIPIENT}" "$RUN.recipient" | field .recipient_id)
id=$(create /v2/settle "$(card "$recipient" tok_visa)" "$RUN.settlement" | field .settlement_id)

# The events of this settlement, each once: an event can arrive twice.
events() {
  SETTLEMENT=$id node -e '
    const lines = require("fs").readFileSync(0, "utf8").split("\n").filter(Boolean).map((line) => JSON.parse(line));
    const verified = lines.filter(({ diagnosis }) => diagnosis === "verified").map(({ body }) => JSON.parse(body));
    const events = new Map(verified.map((event) => [event.id, event]));
    const ours = ({ type, data }) => type.startsWith("settlement.") && data.settlement_id === process.env.SETTLEMENT;
    const numbered = [...events.values()].filter(ours).sort((one, other) => one.sequence - other.sequence);
    for (const { type, sequence } of numbered) console.log(`${type}, number ${sequence}`);
  ' <"$folder/received"
}
has_all() { [ "$(events | wc -l)" -eq 6 ]; }
until_true has_all
events

# Anybody can send to this address. Only the service has the secret.
status=$(curl -sS -o /dev/null -w '%{http_code}' "http://127.0.0.1:$port/" -d '{}' -H 'webhook-id: evt_forged' \
  -H "webhook-timestamp: $(date +%s)" -H 'webhook-signature: v1,AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=')
[ "$status" = 400 ] && echo 'refused: no_matching_signature'
