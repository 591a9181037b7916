//! What a program and its failed tests said last.

/// How many lines of each.
const LINES_MAX: usize = 25;

/// The last lines of each failed test, under its name; of a program that says nothing of its tests, its own last lines.
pub(super) fn last_words(output: &str) -> String {
    let lines: Vec<&str> = output.lines().collect();
    let is_head = |line: &str| failed_test(line).is_some();
    let heads: Vec<usize> = (0..lines.len()).filter(|&nth| is_head(lines[nth])).collect();
    if heads.is_empty() {
        return tail(&lines).join("\n");
    }
    let block = |head: usize| {
        let said = &lines[head + 1..];
        // A backtrace would fill all the lines.
        let is_end = |line: &&str| is_head(line) || ["failures:", "stack backtrace:"].contains(line);
        let end = said.iter().position(is_end).unwrap_or(said.len());
        let last = tail(&said[..end]);
        [&[lines[head]], last].concat().join("\n")
    };
    heads.into_iter().map(block).collect::<Vec<_>>().join("\n")
}

/// The names of the tests that failed.
pub(super) fn failed_tests(output: &str) -> Vec<&str> {
    output.lines().filter_map(failed_test).collect()
}

/// The test whose output begins behind this line.
fn failed_test(line: &str) -> Option<&str> {
    line.strip_prefix("---- ")?.strip_suffix(" stdout ----")
}

/// The last lines up to an empty one: the result of a test program, the summary of a task.
pub(super) fn last_paragraph(output: &str) -> String {
    let lines: Vec<&str> = output.lines().collect();
    let last = tail(&lines);
    let begin = last.iter().rposition(|line| line.trim().is_empty()).map_or(0, |empty| empty + 1);
    last[begin..].join("\n")
}

fn tail<'a, 'b>(lines: &'b [&'a str]) -> &'b [&'a str] {
    let end = lines.iter().rposition(|line| !line.trim().is_empty()).map_or(0, |last| last + 1);
    &lines[end.saturating_sub(LINES_MAX)..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_failed_test_says_its_last_lines() {
        let long: Vec<String> = (0..100).map(|nth| format!("line {nth}")).collect();
        let output = format!(
            "running 2 tests\n\nfailures:\n\n---- a stdout ----\n{}\nstack backtrace:\n   0: main\n\n\n---- b stdout ----\nno\n\n\nfailures:\n    a\n    b\n\ntest result: FAILED\n",
            long.join("\n")
        );
        let words = last_words(&output);
        let expected = format!("---- a stdout ----\n{}\n---- b stdout ----\nno", long[75..].join("\n"));
        assert_eq!(words, expected);
        assert_eq!(failed_tests(&output), ["a", "b"]);
    }

    #[test]
    fn a_program_that_names_no_test_says_its_own_last_lines() {
        assert_eq!(last_words("signal 6\n\n"), "signal 6");
        assert_eq!(last_words(""), "");
    }

    #[test]
    fn the_last_paragraph_is_the_result() {
        let output = "running 1 test\ntest a ... ok\n\ntest result: ok. 1 passed\nit took 2 s\n\n";
        assert_eq!(last_paragraph(output), "test result: ok. 1 passed\nit took 2 s");
        assert_eq!(last_paragraph(""), "");
    }
}
