//! The parts of a markdown file that rules ask for: links, headings, and lines of code blocks.

/// A link `[text](target)` outside of code.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) line: usize,
    pub(crate) text: String,
    pub(crate) target: String,
}

/// All inline links, in order.
pub(crate) fn links(text: &str) -> Vec<Link> {
    let mut links = Vec::new();
    for (line, prose) in lines(text, false) {
        let mut rest = prose;
        while let Some((before, after)) = rest.split_once("](") {
            let Some((target, behind)) = after.split_once(')') else {
                break;
            };
            let label = before.rsplit_once('[').map_or(before, |(_, label)| label);
            links.push(Link { line, text: label.to_owned(), target: target.trim().to_owned() });
            rest = behind;
        }
    }
    links
}

/// The anchors of all headings, as web front ends make them: lower case, hyphens for spaces, no punctuation.
pub(crate) fn anchors(text: &str) -> Vec<String> {
    let headings = lines(text, false).into_iter().filter(|(_, line)| line.starts_with('#'));
    headings.map(|(_, line)| anchor(line.trim_start_matches('#').trim())).collect()
}

/// The fences that open code blocks: their lines, and the words behind them, such as `rust` and `no_run`.
pub(crate) fn fences(text: &str) -> Vec<(usize, Vec<&str>)> {
    let fences =
        (1..).zip(text.lines()).filter_map(|(line, text)| Some((line, text.trim_start().strip_prefix("```")?)));
    let opening = fences.step_by(2);
    opening
        .map(|(line, words)| (line, words.split(',').map(str::trim).filter(|word| !word.is_empty()).collect()))
        .collect()
}

/// The lines inside fenced code blocks, with their numbers.
pub(crate) fn code_lines(text: &str) -> Vec<(usize, &str)> {
    lines(text, true)
}

fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|letter| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_'));
    kept.map(|letter| if letter == ' ' { '-' } else { letter.to_ascii_lowercase() }).collect()
}

/// The lines inside or outside of fenced code blocks, without the fences.
fn lines(text: &str, inside_code: bool) -> Vec<(usize, &str)> {
    let mut in_code = false;
    let mut kept = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        } else if in_code == inside_code {
            kept.push((number, line));
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::{anchors, code_lines, fences, links};

    #[test]
    fn links_have_lines_and_targets() {
        let text = "# A\nSee [b](B.md#c) and [`d`](d.rs).\n```\n[no](link)\n```\n";
        let found: Vec<(usize, String, String)> =
            links(text).into_iter().map(|link| (link.line, link.text, link.target)).collect();
        let expected = [(2, "b", "B.md#c"), (2, "`d`", "d.rs")]
            .map(|(line, text, target)| (line, text.to_owned(), target.to_owned()));
        assert_eq!(found, expected);
    }

    #[test]
    fn a_fence_has_words() {
        let text = "```rust,no_run\n```\n```\n```\n";
        assert_eq!(fences(text), [(1, vec!["rust", "no_run"]), (3, vec![])]);
    }

    #[test]
    fn headings_become_anchors() {
        assert_eq!(anchors("## What is *not* promised, G1!\n```\n# no heading\n```\n"), ["what-is-not-promised-g1"]);
    }

    #[test]
    fn code_is_what_stands_between_fences() {
        assert_eq!(code_lines("a\n```sh\nb\n```\nc\n"), [(3, "b")]);
    }
}
