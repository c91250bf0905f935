// Adds a button to each example that copies it. Without this script the examples can be selected.
const SHOWN_MS = 2_000;

for (const figure of document.querySelectorAll('figure.code:not(.output)')) {
  const button = document.createElement('button');
  button.type = 'button';
  button.textContent = 'Copy';
  button.setAttribute('aria-live', 'polite');
  button.addEventListener('click', async () => {
    const code = figure.querySelector('code');
    // A browser has no clipboard for pages that came by plain HTTP from another machine.
    if (navigator.clipboard) await navigator.clipboard.writeText(code.textContent.trimEnd());
    else getSelection().selectAllChildren(code);
    button.textContent = navigator.clipboard ? 'Copied' : 'Selected';
    setTimeout(() => {
      button.textContent = 'Copy';
    }, SHOWN_MS);
  });
  figure.querySelector('figcaption').append(button);
}
