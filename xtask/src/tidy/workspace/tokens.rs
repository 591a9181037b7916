//! Rust as a flat list of tokens with line numbers.
//!
//! Comments are gone, a string is one token that keeps its quotes, and a doc comment reads `# [ doc = "…" ]`, so a rule
//! that looks for words in code never meets them in prose.

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// One token; a group is its two delimiters with what is between them.
#[derive(Clone, Debug)]
pub(crate) struct Token {
    pub(crate) text: String,
    pub(crate) line: usize,
}

/// The tokens of a stream, groups opened.
pub(crate) fn flat(stream: TokenStream) -> Vec<Token> {
    let mut tokens = Vec::new();
    flatten(stream, &mut tokens);
    tokens
}

/// Where `words` stand one after the other, as indices of the first of them.
pub(crate) fn find<'a>(tokens: &'a [Token], words: &'a [&str]) -> impl Iterator<Item = usize> + 'a {
    let places = tokens.iter().enumerate().filter(|(_, token)| token.text == words[0]);
    places.map(|(at, _)| at).filter(move |&at| starts_with(&tokens[at..], words))
}

/// Whether `tokens` begin with `words`.
pub(crate) fn starts_with(tokens: &[Token], words: &[&str]) -> bool {
    tokens.len() >= words.len() && words.iter().zip(tokens).all(|(word, token)| token.text == *word)
}

/// The index of the delimiter that closes the one at `open`; the end of the list if nothing does.
pub(crate) fn closing(tokens: &[Token], open: usize) -> usize {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match token.text.as_str() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return at;
        }
    }
    tokens.len()
}

/// The index of the delimiter that opens the one at `close`; the begin of the list if nothing does.
pub(crate) fn opening(tokens: &[Token], close: usize) -> usize {
    let mut depth = 0_usize;
    for at in (0..=close).rev() {
        match tokens[at].text.as_str() {
            ")" | "]" | "}" => depth += 1,
            "(" | "[" | "{" => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return at;
        }
    }
    0
}

/// The tokens without what is compiled for tests only: items behind `#[cfg(test)]`.
pub(crate) fn without_tests(tokens: &[Token]) -> Vec<Token> {
    const GATE: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];
    let mut kept = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        if starts_with(&tokens[at..], &GATE) {
            at = end_of_item(tokens, at + GATE.len());
        } else {
            kept.push(tokens[at].clone());
            at += 1;
        }
    }
    kept
}

/// The index behind the item that begins at `at`: behind its `;` or its braces.
pub(crate) fn end_of_item(tokens: &[Token], mut at: usize) -> usize {
    while at < tokens.len() {
        match tokens[at].text.as_str() {
            ";" => return at + 1,
            "{" => return closing(tokens, at) + 1,
            "(" | "[" => at = closing(tokens, at) + 1,
            _ => at += 1,
        }
    }
    at
}

fn flatten(stream: TokenStream, tokens: &mut Vec<Token>) {
    for tree in stream {
        match tree {
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::None => ("", ""),
                };
                tokens.push(Token { text: open.to_owned(), line: group.span_open().start().line });
                flatten(group.stream(), tokens);
                tokens.push(Token { text: close.to_owned(), line: group.span_close().start().line });
            }
            other => tokens.push(Token { text: other.to_string(), line: other.span().start().line }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Token, find, flat, without_tests};

    fn read(text: &str) -> Vec<Token> {
        flat(text.parse().expect("the snippet is Rust"))
    }

    #[test]
    fn comments_and_strings_are_not_code() {
        let tokens = read("/// todo!()\nfn f() { // todo!()\n \"todo!()\"; }");
        assert_eq!(find(&tokens, &["todo", "!"]).count(), 0);
    }

    #[test]
    fn a_token_knows_its_line() {
        let tokens = read("\n\nfn f() {\n  todo!()\n}");
        let lines: Vec<usize> = find(&tokens, &["todo", "!"]).map(|at| tokens[at].line).collect();
        assert_eq!(lines, [4]);
    }

    #[test]
    fn items_for_tests_are_left_out() {
        let tokens = read("#[cfg(test)] mod a; fn b() {} #[cfg(test)] mod c { fn d() {} } fn e() {}");
        let names: Vec<String> = without_tests(&tokens).into_iter().map(|token| token.text).collect();
        assert_eq!(names.concat(), "fnb(){}fne(){}");
    }
}
