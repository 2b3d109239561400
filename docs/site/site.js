// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// A flowchart from left to right is too small to read on a narrow screen: draw it from top to bottom.
if (matchMedia("(max-width: 44.984375em)").matches) {
  for (const code of document.querySelectorAll("pre.mermaid > code")) {
    code.textContent = code.textContent.replace(/^(\s*(?:flowchart|graph|direction)) (?:LR|RL)$/gm, "$1 TB")
  }
}

// A diagram that would be too small even so keeps a size at which its text can be read, and scrolls.
const attachShadow = Element.prototype.attachShadow
Element.prototype.attachShadow = function (init) {
  const root = attachShadow.call(this, init)
  if (this.classList.contains("mermaid")) {
    new MutationObserver(() => {
      const svg = root.querySelector("svg")
      if (svg) svg.style.minWidth = `${0.7 * svg.viewBox.baseVal.width}px`
    }).observe(root, { childList: true })
  }
  return root
}

// Open what hides the field to which an address leads.
function reveal() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)))
  let part = target?.closest("details")
  if (!part) return
  for (; part; part = part.parentElement.closest("details")) part.open = true
  target.scrollIntoView()
}
addEventListener("hashchange", reveal)
reveal()

// Open and close all fields of a reference page.
const parts = document.querySelectorAll("dd > details")
if (parts.length > 0) {
  const button = document.createElement("button")
  button.className = "md-button"
  const label = () => (button.textContent = [...parts].every((p) => p.open) ? "Close all fields" : "Open all fields")
  button.addEventListener("click", () => {
    const open = ![...parts].every((p) => p.open)
    for (const p of parts) p.open = open
    label()
  })
  label()
  document.querySelector("dl").before(button)
}
