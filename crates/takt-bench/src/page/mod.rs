//! Pages of reports: HTML that needs no other file, no script and no network, with plots as SVG.
//!
//! | module | content |
//! |---|---|
//! | [`axis`] | axes of plots and their ticks |
//! | [`chart`] | drawing of plots |
//! | [`style`] | style sheet of pages: light, dark, printed |
//!
//! Colours are those of a light page. The style sheet replaces them on a dark one, by the colours that the SVG names.

pub mod axis;
pub mod chart;
pub mod style;

/// Text as it stands in a page.
#[must_use]
pub fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            letter => safe.push(letter),
        }
    }
    safe
}

/// A page of these parts.
#[must_use]
pub fn page(title: &str, body: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{}</title>\n<style>{}</style>\n\
         </head>\n<body>\n<a class=\"skip\" href=\"#content\">Skip to content</a>\n<main id=\"content\">\n<h1>{}</h1>\n{body}</main>\n</body>\n</html>\n",
        escape(title),
        style::STYLE,
        escape(title)
    )
}

/// A table. It can be scrolled, also by keyboard.
#[must_use]
pub fn table<H: AsRef<str>>(head: &[H], rows: &[Vec<String>]) -> String {
    let of = |tag: &str, fields: &mut dyn Iterator<Item = &str>| {
        let fields: String = fields.map(|field| format!("<{tag}>{}</{tag}>", escape(field))).collect();
        format!("<tr>{fields}</tr>\n")
    };
    let body: String = rows.iter().map(|row| of("td", &mut row.iter().map(String::as_str))).collect();
    format!(
        "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"table\"><table><thead>{}</thead><tbody>{body}</tbody></table></div>\n",
        of("th scope=\"col\"", &mut head.iter().map(AsRef::as_ref)).replace("</th scope=\"col\">", "</th>")
    )
}

/// A time in seconds since 1970, as text.
#[must_use]
pub fn utc(seconds: u64) -> String {
    // Days from 1 March of the year 0, in cycles of 400 years; the year begins in March, so that the leap day is its last.
    let (days, second) = (seconds / 86_400 + 719_468, seconds % 86_400);
    let (cycle, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let (day, month) = (day - (153 * month + 2) / 5 + 1, if month < 10 { month + 3 } else { month - 9 });
    let year = year + 400 * cycle + u64::from(month <= 2);
    format!("{year}-{month:02}-{day:02} {:02}:{:02} UTC", second / 3600, second / 60 % 60)
}

/// A number with commas between thousands.
#[must_use]
pub fn grouped(value: f64) -> String {
    if value.abs() < 10.0 && value.fract().abs() > 1e-9 {
        return format!("{value:.1}");
    }
    let digits = format!("{:.0}", value.abs());
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().filter_map(|group| std::str::from_utf8(group).ok()).collect(); // tidy-allow(dropped-cause): digits
    format!("{}{}", if value <= -0.5 { "-" } else { "" }, groups.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_dates_also_on_leap_days() {
        let times = [0, 951_782_400, 1_795_429_508, 4_107_542_399].map(utc);
        assert_eq!(
            times,
            ["1970-01-01 00:00 UTC", "2000-02-29 00:00 UTC", "2026-11-23 10:25 UTC", "2100-02-28 23:59 UTC"]
        );
    }

    #[test]
    fn numbers_of_axes_are_grouped() {
        let of = |value| grouped(value);
        assert_eq!(
            [of(0.0), of(2.5), of(-20.0), of(5000.0), of(1_234_567.0)],
            ["0", "2.5", "-20", "5,000", "1,234,567"]
        );
    }

    #[test]
    fn texts_of_tables_and_titles_are_escaped() {
        let text = table(&["<b>"], &[vec!["a & \"b\"".into()]]);
        assert!(text.contains("<th scope=\"col\">&lt;b&gt;</th>"), "{text}");
        assert!(text.contains("<td>a &amp; &quot;b&quot;</td>"), "{text}");
        assert!(page("<script>", "").contains("<h1>&lt;script&gt;</h1>"));
    }
}
