#!/usr/bin/env bash
# Compares the settlements of a day with your own book, and explains each difference.
source "$(dirname "$0")/common.sh"

created=()
# Four settlements, one of which fails. A real day has them already.
recipient=$(create /v1/recipients "{\"kind\":\"contractor\",$RECIPIENT}" "$RUN.recipient" | field .recipient_id)
for reference in INV-1001 INV-1002 INV-1003 INV-1004; do
  token=$([ "$reference" = INV-1002 ] && echo tok_declined || echo tok_visa)
  more=',"reference":"'"$reference"'","metadata":{"batch":"'"$RUN"'"}'
  id=$(create /v2/settle "$(card "$recipient" "$token" 250.00 "$more")" "$RUN.$reference" | field .settlement_id)
  created+=("$(wait_for "/v2/settle/$id" "$ENDED" | field .created_at)")
done
# The day is that of the settlements, by the service's clock, and not that of the moment in which this runs.
first_day=${created[0]:0:10}
next_day=$(node -p "new Date(Date.parse('${created[3]:0:10}') + 24 * 60 * 60000).toISOString().slice(0, 10)")

# What the partner believes.
book='{"INV-1001":"250.00","INV-1002":"250.00","INV-1003":"300.00","INV-1005":"250.00"}'

list() {
  call GET /v2/settlements '' -G --data-urlencode "created_from=${first_day}T00:00:00Z" \
    --data-urlencode "created_to=${next_day}T00:00:00Z" --data-urlencode "metadata[batch]=$RUN" -d limit=100 "$@"
}
# A longer day has more pages: `Link` names the next one.
page=$(list)

BOOK=$book node - "$page" <<'JS'
const found = new Map(JSON.parse(process.argv[2]).map((one) => [one.reference, one]));
const book = JSON.parse(process.env.BOOK);
for (const reference of [...new Set([...Object.keys(book), ...found.keys()])].sort()) {
  const { status, amount, source_currency: currency, failure } = found.get(reference) ?? {};
  const booked = book[reference];
  const explain = () => {
    if (status === undefined) return 'is missing at the service: nothing was accepted, so its intent can be sent again';
    if (booked === undefined) return `is missing in the book: ${status}, ${amount} ${currency}`;
    if (status !== 'settled') return `differs: booked as settled, but ${status} (${failure?.code})`;
    if (booked !== amount) return `differs: booked with ${booked} ${currency}, ${status} with ${amount} ${currency}`;
    return `agrees: ${status}, ${amount} ${currency}`;
  };
  console.log(`${reference} ${explain()}`);
}
JS
settled=$(list -d status=settled | field .length)
echo "$(field .length <<<"$page") settlements today, $settled of them settled"
