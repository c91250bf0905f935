// Adds a button to each example that copies it. Without this script the examples can be selected.
const SHOWN_MS = 2_000;

for (const figure of document.querySelectorAll('figure.code:not(.output)')) {
  const button = document.createElement('button');
  button.type = 'button';
  button.textContent = 'Copy';
  button.setAttribute('aria-live', 'polite');
  button.addEventListener('click', async () => {
    const code = figure.querySelector('code');
    // A browser has no clipboard for pages that came by plain HTTP from another machine, and may refuse any page.
    const copying = navigator.clipboard?.writeText(code.textContent.trimEnd());
    const isCopied = await copying?.then(
      () => true,
      () => false,
    );
    if (!isCopied) getSelection().selectAllChildren(code);
    button.textContent = isCopied ? 'Copied' : 'Selected';
    setTimeout(() => {
      button.textContent = 'Copy';
    }, SHOWN_MS);
  });
  figure.querySelector('figcaption').append(button);
}
