#!/usr/bin/env bash
# A consumer signs in with a one-time code, sends money, and keeps the certificate.
NOBODY='Accept: application/json'
AUTH=$NOBODY
source "$(dirname "$0")/common.sh"

# Outside the local sandbox the code comes by email, and the answer does not have it.
challenge=$(call POST /consumer/auth/request-otp '{"email":"'"$RUN"'@example.com"}')
answer='{"challenge_id":"'"$(field .challenge_id <<<"$challenge")"'","code":"'"$(field .sandbox_code <<<"$challenge")"'"}'
token=$(call POST /consumer/auth/verify-otp "$answer" | field .access_token)
AUTH="Authorization: Bearer $token"
echo 'signed in'

recipient=$(create /consumer/recipients "{$RECIPIENT}" "$RUN.recipient" | field .recipient_id)

quote=$(call POST /consumer/quote '{"corridor":"US-JM","amount":"250.00","payment_method":"card"}')
echo "quote: $(field .amount <<<"$quote") USD become $(field .destination_amount <<<"$quote") JMD"

transfer=$(create /consumer/transfers \
  '{"quote_id":"'"$(field .quote_id <<<"$quote")"'","recipient_id":"'"$recipient"'","card_token":"tok_visa"}' "$RUN.transfer" | field .transfer_id)
ended=$(wait_for "/consumer/transfers/$transfer" "$ENDED")
echo "transfer: $(field .status <<<"$ended")"

cert=$(field .certificate_id <<<"$ended")
call GET "/consumer/transfers/$transfer/certificate" >"$folder/$cert.json"
signature=$(sed -n 's/^x-certificate-signature: //Ip' "$folder/headers" | tr -d '\r')
call GET /.well-known/jwks.json >"$folder/jwks.json"
npm run --silent verify-certificate -- "$folder/$cert.json" --signature "$signature" --jwks "$folder/jwks.json" >"$folder/checks"
grep -q "^$cert is valid" "$folder/checks" && echo "certificate $cert: valid, checked offline"

call POST /consumer/auth/logout
AUTH=$NOBODY
echo "signed out: $(call GET /consumer/me | field .code)"
