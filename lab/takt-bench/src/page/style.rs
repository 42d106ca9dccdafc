//! Style sheet of report pages: light, dark, and print.

use plotters::style::RGBColor;

/// Color of axes and text of plots.
pub const INK: RGBColor = RGBColor(0x33, 0x37, 0x3d);
/// Color of the grid of plots.
pub const GRID: RGBColor = RGBColor(0xe3, 0xe6, 0xea);
/// Colors of lines and bars. Each has a contrast of 3:1 against the page, light and dark.
pub const COLORS: [&str; 6] = ["#1A66CC", "#D1570C", "#1B8044", "#8A3FC4", "#C2185B", "#6B7280"];

/// Returns a color of [`COLORS`] by its index, modulo their number.
#[must_use]
pub fn color(place: usize) -> RGBColor {
    let octet = |at: usize| u8::from_str_radix(&COLORS[place % COLORS.len()][at..at + 2], 16).unwrap_or(0);
    RGBColor(octet(1), octet(3), octet(5))
}

/// Style sheet of all pages.
pub const STYLE: &str = r##"
:root { color-scheme: light dark; --ink: #1c1f23; --soft: #5a616b; --page: #ffffff; --rule: #d9dde3; --good: #1b8044; --bad: #b3261e; --link: #1a66cc; --panel: #f5f6f8; }
@media screen and (prefers-color-scheme: dark) {
  :root { --ink: #e4e7eb; --soft: #a3abb6; --page: #16181c; --rule: #343941; --good: #53c27f; --bad: #ff8a80; --link: #6aa7f8; --panel: #1f2227; }
}
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--page); max-width: 72rem; margin: 2rem auto; padding: 0 1rem; overflow-wrap: break-word; }
h1 { font-size: 1.6rem; line-height: 1.25; } h2 { font-size: 1.25rem; border-top: 1px solid var(--rule); padding-top: 1rem; margin-top: 2.5rem; } h3 { font-size: 1.05rem; margin-top: 2rem; }
a { color: var(--link); }
a.skip { position: absolute; left: -100rem; } a.skip:focus { left: 1rem; top: 0.5rem; background: var(--page); padding: 0.3rem 0.6rem; }
dl.facts { display: grid; grid-template-columns: max-content 1fr; gap: 0.1rem 1rem; font-size: 0.9rem; } dl.facts dt { color: var(--soft); } dl.facts dd { margin: 0; min-width: 0; overflow-wrap: anywhere; }
h4 { font-size: 0.95rem; margin: 1rem 0 0.2rem; }
p.facts, figcaption { color: var(--soft); font-size: 0.9rem; }
p.warning { border-left: 4px solid var(--bad); padding: 0.3rem 0.8rem; background: var(--panel); }
code { font-size: 0.9em; overflow-wrap: anywhere; }
.wide { overflow-x: auto; margin: 0.5rem 0; }
table { border-collapse: collapse; font-size: 0.9rem; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: 0.25rem 0.9rem 0.25rem 0; border-bottom: 1px solid var(--rule); vertical-align: top; overflow-wrap: normal; }
td { max-width: 34rem; } td.n, th.n { text-align: right; } td.n { white-space: nowrap; }
details { margin: 0.4rem 0 0.8rem; } summary { cursor: pointer; color: var(--link); }
nav ul { columns: 20rem; padding-left: 1.2rem; }
.good { color: var(--good); } .bad { color: var(--bad); }
figure.plot { margin: 1rem 0 1.5rem; }
figure.plot > .wide > svg { width: 100%; height: auto; max-width: 860px; min-width: 560px; display: block; }
ul.legend { list-style: none; padding: 0; margin: 0.3rem 0; display: flex; flex-wrap: wrap; gap: 0.2rem 1.2rem; font-size: 0.9rem; }
ul.legend svg { width: 38px; height: 12px; margin-right: 0.4em; vertical-align: middle; }
@media screen and (prefers-color-scheme: dark) {
  svg [stroke="#33373D"] { stroke: #c6cbd3; }
  svg [fill="#33373D"] { fill: #c6cbd3; }
  svg [stroke="#E3E6EA"] { stroke: #343941; }
  svg [fill="#E3E6EA"] { fill: #343941; }
  svg [stroke="#1A66CC"] { stroke: #6aa7f8; } svg [fill="#1A66CC"] { fill: #6aa7f8; }
  svg [stroke="#D1570C"] { stroke: #f5924e; } svg [fill="#D1570C"] { fill: #f5924e; }
  svg [stroke="#1B8044"] { stroke: #53c27f; } svg [fill="#1B8044"] { fill: #53c27f; }
  svg [stroke="#8A3FC4"] { stroke: #c08af0; } svg [fill="#8A3FC4"] { fill: #c08af0; }
  svg [stroke="#C2185B"] { stroke: #f27aa6; } svg [fill="#C2185B"] { fill: #f27aa6; }
  svg [stroke="#6B7280"] { stroke: #9aa3b0; } svg [fill="#6B7280"] { fill: #9aa3b0; }
}
@media print {
  :root { color-scheme: light; --ink: #000000; --soft: #444444; --page: #ffffff; --rule: #bbbbbb; --good: #1b8044; --bad: #b3261e; --link: #000000; --panel: #ffffff; }
  body { max-width: none; margin: 0; font-size: 10pt; }
  .wide { overflow: visible; } table { font-size: 8pt; } td { max-width: none; }
  figure.plot, tr { break-inside: avoid; } h2, h3 { break-after: avoid; } thead { display: table-header-group; }
  a.skip, nav { display: none; }
  figure.plot > .wide > svg { min-width: 0; }
}
"##;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_plot_color_has_a_dark_page_replacement() {
        let of_plots = [INK, GRID].map(|color| format!("#{:02X}{:02X}{:02X}", color.0, color.1, color.2));
        for color in COLORS.iter().map(ToString::to_string).chain(of_plots) {
            for attribute in ["stroke", "fill"] {
                assert!(STYLE.contains(&format!("[{attribute}=\"{color}\"]")), "{attribute} {color}");
            }
        }
        assert_eq!(color(6), color(0));
    }
}
