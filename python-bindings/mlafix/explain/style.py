"""Defines the style sheet and the script of the page that explains a kernel.

Hovering over a line highlights the lines of all panes that come from the same line of the source. A click keeps the
highlight and scrolls the other panes to the highlighted lines. Panes of generated code initially show the first line
that comes from the kernel's body.
"""

STYLE = """
:root { color-scheme: light dark; --ink: #1d2733; --soft: #5a6b7d; --rule: #d9e0e7; --mark: #ffe9a8; --panel: #f7f9fb; --paper: #fff;
  --yes: #14713d; --part: #8a5000; --no: #b3261e; --costs: #fff4e0; --bar: #3a7bd5; }
@media (prefers-color-scheme: dark) { :root { --ink: #dde4ec; --soft: #9fb0c0; --rule: #35404c; --mark: #5a4a12; --panel: #1b222a;
  --paper: #12171d; --yes: #6fd39a; --part: #f0b45c; --no: #ff8a80; --costs: #33270f; --bar: #6aa3ee; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1500px; padding: 24px 28px 60px; font: 15px/1.5 system-ui, sans-serif; color: var(--ink);
  background: var(--paper); }
h1 { font-size: 26px; margin: 0 0 4px; } h2 { font-size: 18px; margin: 34px 0 8px; }
h1, h2, p { overflow-wrap: anywhere; } a { color: inherit; }
p, .soft { color: var(--soft); margin: 4px 0 10px; max-width: 100ch; }
code, .code { font-family: ui-monospace, "DejaVu Sans Mono", monospace; font-size: 12px; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; margin: 6px 0 12px; } th { text-align: left; font-weight: 600; }
th, td { border-bottom: 1px solid var(--rule); padding: 4px 14px 4px 0; vertical-align: top; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
.panes { display: grid; grid-template-columns: minmax(0, 5fr) minmax(0, 5fr) minmax(0, 4fr); gap: 10px; }
.pane { border: 1px solid var(--rule); border-radius: 6px; overflow: hidden; display: flex; flex-direction: column; height: 600px; }
.pane header { background: var(--panel); border-bottom: 1px solid var(--rule); padding: 6px 10px; font-weight: 600; }
.pane header button { font: inherit; font-weight: 400; border: 1px solid var(--rule); background: var(--paper); color: var(--ink);
  border-radius: 4px; margin-right: 6px; padding: 0 8px; cursor: pointer; }
.pane header button.on { background: var(--ink); color: var(--paper); }
.code { overflow: auto; flex: 1; margin: 0; padding: 6px 0; line-height: 1.45; }
.code[hidden] { display: none; }
.l { white-space: pre-wrap; overflow-wrap: anywhere; padding: 0 10px 0 calc(10px + 7ch); text-indent: -7ch; }
.l[data-s] { cursor: pointer; }
.l.on { background: var(--mark); } .l b { color: var(--soft); font-weight: 400; user-select: none; }
.r { font: 12px/1.4 system-ui, sans-serif; color: var(--soft); margin: 0 10px 3px calc(10px + 7ch); }
.r span { font-weight: 600; } .r.costs { background: var(--costs); color: var(--part); border-left: 3px solid; padding: 2px 6px; }
svg.layout { width: 100%; min-width: 640px; max-width: 1060px; display: block; margin: 4px 0 12px; }
svg .label { font: 12px system-ui, sans-serif; fill: var(--soft); }
svg .lane { font: 10px ui-monospace, monospace; text-anchor: middle; fill: #26323e; }
svg .axis { font: 11px system-ui, sans-serif; fill: var(--soft); text-anchor: middle; } svg .axis.first { text-anchor: start; }
.yes { color: var(--yes); } .part { color: var(--part); } .no { color: var(--no); }
.bar { display: inline-block; width: 90px; height: 8px; background: var(--rule); border-radius: 4px; margin-right: 8px; }
.bar i { display: block; height: 8px; border-radius: 4px; background: var(--bar); }
ul { margin: 0; padding-left: 18px; }
@media (max-width: 900px) { body { padding: 14px 12px 40px; } .panes { grid-template-columns: minmax(0, 1fr); } .pane { height: 420px; }
  h1 { font-size: 21px; } .l { padding-left: calc(6px + 7ch); } }
"""

SCRIPT = """
let kept = null;
const lines = s => document.querySelectorAll('.l[data-s="' + s + '"]');
const mark = s => { document.querySelectorAll('.l.on').forEach(e => e.classList.remove('on')); if (s) lines(s).forEach(e => e.classList.add('on')); };
const show = (s, not) => document.querySelectorAll('.code:not([hidden])').forEach(pane => {
  const first = pane !== not && pane.querySelector('.l[data-s="' + s + '"]');
  if (first) pane.scrollTop = first.offsetTop - pane.offsetTop - 60;
});
document.addEventListener('mouseover', e => { const l = e.target.closest && e.target.closest('.l[data-s]'); mark(l ? l.dataset.s : kept); });
document.addEventListener('click', e => {
  const l = e.target.closest('.l[data-s], a[data-s]');
  if (l) { kept = kept === l.dataset.s && l.tagName !== 'A' ? null : l.dataset.s; mark(kept); if (kept) show(kept, l.closest('.code')); if (l.tagName === 'A') e.preventDefault(); }
  const b = e.target.closest('button[data-stage]');
  if (b) {
    const pane = b.closest('.pane');
    pane.querySelectorAll('button').forEach(o => o.classList.toggle('on', o === b));
    pane.querySelectorAll('.code').forEach(o => o.hidden = o.dataset.stage !== b.dataset.stage);
    if (kept) { mark(kept); show(kept, null); } else begin(pane);
  }
});
// Past the kernel's own line: its declaration.
const head = document.querySelector('.panes') && document.querySelector('.panes').dataset.head;
const begin = pane => pane.querySelectorAll('.code:not([hidden])').forEach(code => {
  if (code.dataset.stage === 'source') return;
  const first = [...code.querySelectorAll('.l[data-s]')].find(line => line.dataset.s !== head);
  if (first) code.scrollTop = first.offsetTop - code.offsetTop;
});
document.querySelectorAll('.pane').forEach(begin);
"""
