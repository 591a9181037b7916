//! Every log event has a fixed name, and the page of log events lists each with its level and its fields.

use std::collections::{BTreeMap, BTreeSet};

use crate::tidy::finding::Finding;
use crate::tidy::workspace::source::Source;
use crate::tidy::workspace::tokens::{Token, closing, find};
use crate::tidy::workspace::tree::{TextFile, Tree};

const PAGE: &str = "docs/log-events.md";

/// The crates whose events the page lists, with their sections there.
const CRATES: [(&str, &str); 6] = [
    ("saga-core/src/", "## `saga_core`"),
    ("saga-sqlite/src/", "## `saga_sqlite`"),
    ("saga-postgres/src/", "## `saga_postgres`"),
    ("saga-amqp/src/", "## `saga_amqp`"),
    ("saga-kafka/src/", "## `saga_kafka`"),
    ("saga-sqs/src/", "## `saga_sqs`"),
];

/// The section that explains the fields.
const FIELDS: &str = "## Fields";

const LEVELS: [&str; 5] = ["trace", "debug", "info", "warn", "error"];

type Names = BTreeSet<String>;

/// The events of one crate, by name: their levels and their fields.
type Events = BTreeMap<String, (Names, Names)>;

/// One finding for each event without a fixed name, and for each difference between the code and the page.
pub(crate) fn are_listed(tree: &Tree) -> Vec<Finding> {
    let Some(page) = tree.markdown.iter().find(|file| file.path == PAGE) else { return Vec::new() };
    let mut findings = Vec::new();
    let mut fields = Names::new();
    for (folder, section) in CRATES {
        let mut events = Events::new();
        for source in tree.sources.iter().filter(|source| source.is_in(folder)) {
            findings.extend(read_events(source, &mut events));
        }
        fields.extend(events.values().flat_map(|(_, fields)| fields.iter().cloned()));
        findings.extend(compare(page, section, &events));
    }
    let explained: Names = rows(page, FIELDS).into_iter().flat_map(|(_, cells)| names_in(&cells[0])).collect();
    let missing = fields.difference(&explained).map(|field| format!("the field `{field}` is not explained"));
    let unused = explained.difference(&fields).map(|field| format!("no event has the field `{field}`"));
    findings.extend(missing.chain(unused).map(|message| Finding::error(PAGE, 1, message)));
    findings
}

/// Adds the events of a file.
fn read_events(source: &Source, events: &mut Events) -> Vec<Finding> {
    let tokens = &source.shipped;
    let macros = find(tokens, &["log", ":", ":"]).chain(find(tokens, &["tracing", ":", ":"]));
    let mut findings = Vec::new();
    for at in macros {
        let (Some(level), Some(open)) = (tokens.get(at + 3), tokens.get(at + 5)) else { continue };
        if !LEVELS.contains(&level.text.as_str()) || tokens[at + 4].text != "!" || open.text != "(" {
            continue;
        }
        let (name, fields) = read_event(&tokens[at + 6..closing(tokens, at + 5)]);
        let Some(name) = name.filter(|name| !name.contains('{')) else {
            let message = "a log event has a fixed name, a text without `{}`; what varies goes into fields";
            findings.push(Finding::error(&source.path, level.line, message));
            continue;
        };
        let (levels, known) = events.entry(name.clone()).or_insert_with(|| (Names::new(), fields.clone()));
        levels.insert(level.text.clone());
        if *known != fields {
            let message = format!("the event \"{name}\" has other fields elsewhere: {}", listed(known));
            findings.push(Finding::error(&source.path, level.line, message));
        }
    }
    findings
}

/// The text and the fields of an event, from what stands between the parentheses of its macro.
fn read_event(tokens: &[Token]) -> (Option<String>, Names) {
    let (mut name, mut fields) = (None, Names::new());
    let mut at = 0;
    while at < tokens.len() {
        let mut end = at;
        while end < tokens.len() && tokens[end].text != "," {
            end = if matches!(tokens[end].text.as_str(), "(" | "[" | "{") { closing(tokens, end) + 1 } else { end + 1 };
        }
        let words: Vec<&str> = tokens[at..end.min(tokens.len())].iter().map(|token| token.text.as_str()).collect();
        match words.as_slice() {
            [text] if text.starts_with('"') => name = Some(text.trim_matches('"').to_owned()),
            ["%" | "?", field, ..] | [field, ..] => _ = fields.insert((*field).to_owned()),
            [] => {}
        }
        at = end + 1;
    }
    (name, fields)
}

/// What the section of a crate says otherwise than its code.
fn compare(page: &TextFile, section: &str, events: &Events) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut listed_names = Names::new();
    for (line, cells) in rows(page, section) {
        let [name, levels, fields, ..] = cells.as_slice() else { continue };
        let mut error = |message: String| findings.push(Finding::error(PAGE, line, message));
        let (levels, fields): (Names, Names) = (levels.split(", ").map(str::to_owned).collect(), names_in(fields));
        match events.get(name.as_str()) {
            None => error(format!("no event of {section} is called \"{name}\"")),
            Some(_) if !listed_names.insert(name.clone()) => error(format!("\"{name}\" is listed twice")),
            Some((known, _)) if *known != levels => error(format!("\"{name}\" has the levels {}", listed(known))),
            Some((_, known)) if *known != fields => error(format!("\"{name}\" has the fields {}", listed(known))),
            Some(_) => {}
        }
    }
    let missing = events.keys().filter(|name| !listed_names.contains(*name));
    findings.extend(missing.map(|name| Finding::error(PAGE, 1, format!("\"{name}\" is missing in {section}"))));
    findings
}

/// The cells of the table rows of a section, with their lines; not those of the head.
fn rows(page: &TextFile, section: &str) -> Vec<(usize, Vec<String>)> {
    let lines = (1..).zip(page.text.lines()).skip_while(|(_, line)| *line != section).skip(1);
    let lines = lines.take_while(|(_, line)| !line.starts_with("## ")).filter(|(_, line)| line.starts_with('|'));
    let cells = |line: &str| line.trim_matches('|').split(" |").map(|cell| cell.trim().to_owned()).collect();
    lines.skip(2).map(|(number, line)| (number, cells(line))).collect()
}

/// The names in backticks.
fn names_in(cell: &str) -> Names {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

fn listed(names: &Names) -> String {
    if names.is_empty() { "none".to_owned() } else { names.iter().map(String::as_str).collect::<Vec<_>>().join(", ") }
}

#[cfg(test)]
mod tests {
    use super::are_listed;
    use crate::tidy::workspace::tree::Tree;

    const EVENT: &str = "fn f() { log::warn!(saga = %row.key, %error, count = f(a, b), \"saga stuck\"); }";
    const FIELDS: &str = "## Fields\n\n| field | meaning |\n|---|---|\n| `saga` | x |\n| `error`, `count` | x |\n\n";

    fn found(code: &str, rows: &str) -> Vec<String> {
        let page = format!("{FIELDS}## `saga_core`\n\n| event | level | fields | meaning |\n|---|---|---|---|\n{rows}");
        let tree = Tree::of(&[("docs/log-events.md", &page), ("saga-core/src/a.rs", code)]);
        are_listed(&tree).into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn a_page_that_says_what_the_code_does_passes() {
        assert_eq!(found(EVENT, "| saga stuck | warn | `saga`, `error`, `count` | x |\n"), [""; 0]);
        let twice = format!("{EVENT} fn g() {{ tracing::debug!(saga, error, count, \"saga stuck\") }}");
        assert_eq!(found(&twice, "| saga stuck | debug, warn | `saga`, `error`, `count` | x |\n"), [""; 0]);
    }

    #[test]
    fn differences_are_found() {
        let count = |code: &str, rows: &str| found(code, rows).len();
        assert_eq!(count(EVENT, ""), 1, "it is not listed");
        assert_eq!(count(EVENT, "| saga stuck | info | `saga`, `error`, `count` | x |\n"), 1, "another level");
        assert_eq!(count(EVENT, "| saga stuck | warn | `saga`, `error` | x |\n"), 1, "a field is missing");
        let row = "| saga stuck | warn | `saga`, `error`, `count` | x |\n";
        assert_eq!(count(EVENT, &row.repeat(2)), 1, "listed twice");
        assert_eq!(count(EVENT, &format!("{row}| saga lost | warn | `saga` | x |\n")), 1, "no such event");
        let other = format!("{EVENT} fn g() {{ log::warn!(saga, error, \"saga stuck\") }}");
        assert_eq!(count(&other, row), 1, "other fields elsewhere");
        assert_eq!(count(&EVENT.replace("saga stuck", "{x} stuck"), ""), 4, "no fixed name, and no field is used");
        let key = EVENT.replace("saga =", "key =");
        assert_eq!(count(&key, "| saga stuck | warn | `key`, `error`, `count` | x |\n"), 2, "`key` is not explained");
    }
}
