//! HTML pages of reports: self-contained, without scripts and network access, with plots as SVG.
//!
//! | module | content |
//! |---|---|
//! | [`axis`] | axes of plots and their ticks |
//! | [`chart`] | drawing of plots |
//! | [`style`] | style sheet of pages: light, dark, printed |
//!
//! Colors are those of a light page. On a dark page, the style sheet replaces them by color names
//! in the SVG.

pub mod axis;
pub mod chart;
pub mod style;

/// Escapes text for HTML.
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

/// Returns a page with this title and body.
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

/// Returns an HTML table, which scrolls, also by keyboard. Columns of numbers are right-aligned.
#[must_use]
pub fn table<H: AsRef<str>>(head: &[H], rows: &[Vec<String>]) -> String {
    let column = |index: usize| rows.iter().filter_map(move |row| row.get(index)).filter(|field| !field.is_empty());
    let classes: Vec<&str> = (0..head.len())
        .map(|index| {
            if column(index).next().is_some() && column(index).all(|field| is_number(field)) {
                " class=\"n\""
            } else {
                ""
            }
        })
        .collect();
    let class = |index: usize| classes.get(index).copied().unwrap_or_default();
    let names = head.iter().enumerate();
    let names = names.map(|(index, name)| format!("<th scope=\"col\"{}>{}</th>", class(index), escape(name.as_ref())));
    let body = rows.iter().map(|row| {
        let fields = row.iter().enumerate();
        let fields = fields.map(|(index, field)| format!("<td{}>{}</td>", class(index), escape(field)));
        format!("<tr>{}</tr>\n", fields.collect::<String>())
    });
    format!(
        "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"table\"><table><thead><tr>{}</tr></thead><tbody>{}</tbody></table></div>\n",
        names.collect::<String>(),
        body.collect::<String>()
    )
}

/// Reports whether a field has numbers and no words: `1,234`, `-5 to 6`, `< 2e-16`, `n/a`.
fn is_number(field: &str) -> bool {
    let is_part = |part: &str| {
        let part = part.trim_start_matches(['+', '-', '[']).trim_end_matches([']', ',']);
        matches!(part, "" | "to" | "/" | "<" | "n/a") || part.replace(',', "").parse::<f64>().is_ok()
    };
    field.split(' ').all(is_part)
}

/// Formats a time in seconds since 1970.
#[must_use]
pub fn utc(seconds: u64) -> String {
    // Counts days from 1 March of the year 0, in cycles of 400 years: with a year that begins in
    // March, the leap day is its last day.
    let (days, second) = (seconds / 86_400 + 719_468, seconds % 86_400);
    let (cycle, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let (day, month) = (day - (153 * month + 2) / 5 + 1, if month < 10 { month + 3 } else { month - 9 });
    let year = year + 400 * cycle + u64::from(month <= 2);
    format!("{year}-{month:02}-{day:02} {:02}:{:02} UTC", second / 3600, second / 60 % 60)
}

/// Formats a number with commas between thousands.
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
    fn utc_formats_dates_including_leap_days() {
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
    fn columns_of_numbers_are_flush_right() {
        let row = |text: &str| vec![text.to_owned(), "1 Mbit/s".to_owned()];
        let text = table(&["a", "b"], &["1,234", "-5.0 to +6", "< 2e-16", "n/a", "5 [4, 6]", ""].map(row));
        assert_eq!(
            (text.matches("<td class=\"n\">").count(), text.matches("<th scope=\"col\" class=\"n\">").count()),
            (6, 1)
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
