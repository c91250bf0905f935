#!/usr/bin/env bash
# Settles 250 US dollars, waits for the end, and checks the certificate without the service.
source "$(dirname "$0")/common.sh"

recipient=$(create /v1/recipients "{\"kind\":\"contractor\",$RECIPIENT}" "$RUN.recipient" | field .recipient_id)

# The key and the exact body belong together. Store both before you send them, and send both again after any fault.
key=$RUN.settlement
body=$(card "$recipient" tok_visa 250.00 ',"reference":"INV-1001"')
settle() { create /v2/settle "$body" "$key"; }

id=$(settle | field .settlement_id)
echo 'accepted: 250.00 USD by card for Marcia Brown'

ended=$(wait_for "/v2/settle/$id" "$ENDED")
echo "$(field .status <<<"$ended"): $(field .destination_amount <<<"$ended") JMD, simulated"

cert=$(field .certificate_id <<<"$ended")
call GET "/v1/caribbean/certificate/$cert" >"$folder/$cert.json"
signature=$(sed -n 's/^x-certificate-signature: //Ip' "$folder/headers" | tr -d '\r')
call GET /.well-known/jwks.json >"$folder/jwks.json"
npm run --silent verify-certificate -- "$folder/$cert.json" --signature "$signature" --jwks "$folder/jwks.json" >"$folder/checks"
grep -q "^$cert is valid" "$folder/checks" && echo "certificate $cert: valid, checked offline"

again=$(settle | field .settlement_id)
[ "$again" = "$id" ] && echo 'sent again: the same settlement'
