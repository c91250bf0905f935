#!/usr/bin/env bash
# A hold, a decline, a partial payment and a dispute: what each looks like, and what you do about it.
source "$(dirname "$0")/common.sh"

recipient=$(create /v1/recipients "{\"kind\":\"contractor\",$RECIPIENT}" "$RUN.recipient" | field .recipient_id)
# settle <name> <token> [amount]
settle() { create /v2/settle "$(card "$recipient" "${@:2}")" "$RUN.$1" | field .settlement_id; }
ended() { wait_for "/v2/settle/$1" "$ENDED"; }
event() { call POST "/v2/test-helpers/settlements/$1/events" "$2" >/dev/null; }

# From 1 000.00, the recipient must be verified. The decision releases every settlement that waits for it.
id=$(settle hold tok_visa 1500.00)
held=$(wait_for "/v2/settle/$id" "json.status === 'compliance_hold'" | field .status)
echo "hold: $held, because 1500.00 USD need a verified recipient"
verification=$(create /v1/kyc/verify '{"recipient_id":"'"$recipient"'"}' "$RUN.verification" | field .verification_id)
call POST "/v1/kyc/$verification/complete" '{"status":"verified"}' >/dev/null
echo "hold: $(ended "$id" | field .status) after the verification"

# A settlement that failed never settles. The payer tries again: that is another settlement, with a key of its own.
failed=$(ended "$(settle declined tok_declined)")
echo "decline: $(field .status <<<"$failed") ($(field .failure.code <<<"$failed"))"
echo "decline: $(ended "$(settle accepted tok_visa)" | field .status) with another card"

# Parts add up. Until they cover the amount, the settlement waits; if they never do, what came is due back.
id=$(settle partial tok_manual)
wait_for "/v2/settle/$id" "json.status === 'awaiting_funds'" >/dev/null
event "$id" '{"event":"collection_partial","amount":"100.00"}'
part=$(wait_for "/v2/settle/$id" "json.amount_received !== '0.00'")
echo "partial: $(field .amount_received <<<"$part") of $(field .amount <<<"$part") USD received"
event "$id" '{"event":"collection_succeeded"}'
echo "partial: $(ended "$id" | field .status) after the rest"

# A dispute can come long after the end. It changes no status: read `exceptions`, or receive `settlement.exception`.
id=$(settle dispute tok_dispute)
echo "dispute: $(ended "$id" | field .status)"
disputed=$(wait_for "/v2/settle/$id" 'json.exceptions.length > 0')
echo "dispute: $(field '.exceptions[0].type' <<<"$disputed"); the status stays $(field .status <<<"$disputed")"
