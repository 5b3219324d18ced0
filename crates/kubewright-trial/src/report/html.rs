//! The report as one HTML file: no script, nothing from the network, and what comes from a cluster is text.

use std::fmt::Write;

use super::{Report, escaped};
use crate::finding::Folded;

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem;color-scheme:light dark}\
h1{font-size:1.5rem}h2{font-size:1.1rem;margin-top:2rem}table{border-collapse:collapse;width:100%}\
td,th{border:1px solid #8886;padding:.25rem .5rem;text-align:left;vertical-align:top;overflow-wrap:anywhere}\
pre{background:#8882;padding:.75rem;overflow:auto}code{font-family:ui-monospace,monospace}\
.error{border-left:.4rem solid #c33;padding-left:.6rem}.warning{border-left:.4rem solid #c80;padding-left:.6rem}\
.note{border-left:.4rem solid #58a;padding-left:.6rem}";

impl Report {
    /// As one HTML file.
    #[must_use]
    pub fn html(&self) -> String {
        let title = escaped(&format!("Trial of {}", self.operator));
        let mut page = format!(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\
             <title>{title}</title><style>{STYLE}</style></head><body>\n<h1>{title}</h1>\n<p>{}</p>\n",
            escaped(&self.summary())
        );
        for warning in &self.warnings {
            let _ = writeln!(page, "<p class=\"note\">{}</p>", escaped(warning));
        }
        for finding in &self.findings {
            page += &self.section(finding);
        }
        page += &self.scorecard_html();
        page += &list(
            "Not compared: these fields differ between runs in which nothing went wrong",
            &self.volatile,
        );
        page += &list("Not tried: the time was over", &self.left);
        page + "</body></html>\n"
    }

    fn section(&self, folded: &Folded) -> String {
        let (finding, severity) = (&folded.finding, folded.severity.name());
        let known = if folded.is_known { " (in the baseline)" } else { "" };
        let mut page = format!(
            "<section class=\"{severity}\"><h2>{severity}: {}{known}</h2>\n<p>What has to hold: {} (<code>{}</code>).</p>\n",
            escaped(&finding.message),
            escaped(finding.check.promise()),
            escaped(&folded.key())
        );
        if !folded.plan.steps.is_empty() {
            let (seen, of) = folded.seen;
            let _ = write!(
                page,
                "<p>Plan <code>{}</code>, seen in {seen} of {of} runs:</p>\n<ol>",
                escaped(&folded.plan.name)
            );
            for step in &folded.plan.steps {
                let _ = write!(page, "<li>{}</li>", escaped(&step.to_string()));
            }
            let _ = writeln!(page, "</ol>\n<pre>{}</pre>", escaped(&self.again(folded)));
        }
        if let Some(recording) = &folded.recording {
            let recording = escaped(recording);
            let _ =
                writeln!(page, "<pre>kubewright view {recording}\nkubewright up --from {recording}</pre>");
        }
        if !finding.differences.is_empty() {
            page += "<table><tr><th>object</th><th>field</th><th>expected</th><th>reached</th></tr>\n";
            for one in &finding.differences {
                let cell = |value: Option<&String>| escaped(value.map_or("nothing", String::as_str));
                let _ = writeln!(
                    page,
                    "<tr><td>{}</td><td><code>{}</code></td><td><code>{}</code></td><td><code>{}</code></td></tr>",
                    escaped(&one.id.to_string()),
                    escaped(&one.field),
                    cell(one.expected.as_ref()),
                    cell(one.reached.as_ref())
                );
            }
            page += "</table>\n";
        }
        if !finding.timeline.is_empty() {
            let _ = writeln!(page, "<pre>{}</pre>", escaped(&finding.timeline.join("\n")));
        }
        if folded.plans.len() > 1 {
            let _ = writeln!(
                page,
                "<p>Shown by {} plans: {}</p>",
                folded.plans.len(),
                escaped(&folded.plans.join(", "))
            );
        }
        page + "</section>\n"
    }
}

fn list(title: &str, items: &[String]) -> String {
    if items.is_empty() {
        return String::new();
    }
    let items: String = items.iter().map(|item| format!("<li><code>{}</code></li>", escaped(item))).collect();
    format!("<h2>{}</h2>\n<ul>{items}</ul>\n", escaped(title))
}
