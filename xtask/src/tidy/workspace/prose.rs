//! What a Rust file says in words: its comments and its strings.

/// One word, in lower case, and its line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Word {
    pub(crate) text: String,
    pub(crate) line: usize,
}

/// The words of the file's comments and strings. Each inner list is one text: a string, or comments on lines that follow each
/// other.
pub(crate) fn texts(source: &str) -> Vec<Vec<Word>> {
    let mut reader = Reader { source, at: 0, line: 1, texts: Vec::new(), comment_end: None };
    while reader.at < source.len() {
        reader.step();
    }
    reader.texts
}

/// It reads bytes: all that begins or ends a text is ASCII.
struct Reader<'a> {
    source: &'a str,
    at: usize,
    line: usize,
    texts: Vec<Vec<Word>>,
    /// The line where the last comment ended, as long as nothing but space followed it.
    comment_end: Option<usize>,
}

impl Reader<'_> {
    /// Reads a comment, a string, a quoted character or one byte of code.
    fn step(&mut self) {
        let byte = self.byte(0);
        match byte {
            b'/' if self.byte(1) == b'/' => self.line_comment(),
            b'/' if self.byte(1) == b'*' => self.block_comment(),
            b'"' => self.string(),
            b'r' => match self.raw_string_hashes() {
                Some(hashes) => self.raw_string(hashes),
                None => self.code(1),
            },
            b'\'' => self.code(self.length_of_character()),
            b'\n' => {
                self.line += 1;
                self.at += 1;
            }
            _ if byte.is_ascii_whitespace() => self.at += 1,
            _ => self.code(1),
        }
    }

    /// The byte so far ahead; zero behind the end.
    fn byte(&self, ahead: usize) -> u8 {
        self.source.as_bytes().get(self.at + ahead).copied().unwrap_or_default()
    }

    fn code(&mut self, length: usize) {
        self.at += length;
        self.comment_end = None;
    }

    fn line_comment(&mut self) {
        let length = self.source.as_bytes()[self.at..].iter().position(|byte| *byte == b'\n');
        self.comment(length.map_or(self.source.len(), |length| self.at + length));
    }

    /// Block comments can be nested.
    fn block_comment(&mut self) {
        let bytes = self.source.as_bytes();
        let mut depth = 0_usize;
        let mut end = self.at;
        while end < bytes.len() {
            match &bytes[end..bytes.len().min(end + 2)] {
                b"/*" => (depth, end) = (depth + 1, end + 2),
                b"*/" => (depth, end) = (depth - 1, end + 2),
                _ => end += 1,
            }
            if depth == 0 {
                break;
            }
        }
        self.comment(end);
    }

    /// A sentence can go on in the comment of the next line.
    fn comment(&mut self, end: usize) {
        let words = words(&self.source[self.at..end], self.line);
        let goes_on = self.comment_end.is_some_and(|line| line + 1 >= self.line);
        match self.texts.last_mut() {
            Some(text) if goes_on => text.extend(words),
            _ => self.texts.push(words),
        }
        self.skip_to(end);
        self.comment_end = Some(self.line);
    }

    /// A string in quotes. What is behind a backslash is no letter of a word.
    fn string(&mut self) {
        let bytes = self.source.as_bytes();
        let mut text = Vec::new();
        let mut end = self.at + 1;
        while end < bytes.len() && bytes[end] != b'"' {
            if bytes[end] == b'\\' {
                text.push(if bytes.get(end + 1) == Some(&b'\n') { b'\n' } else { b' ' });
                end += 2;
            } else {
                text.push(bytes[end]);
                end += 1;
            }
        }
        self.texts.push(words(&String::from_utf8_lossy(&text), self.line));
        self.skip_to(end + 1);
        self.comment_end = None;
    }

    /// `r#".."#`.
    fn raw_string(&mut self, hashes: usize) {
        let begin = self.at + hashes + 2;
        let close = format!("\"{}", "#".repeat(hashes));
        let length = self.source[begin..].find(&close).unwrap_or(self.source.len() - begin);
        self.texts.push(words(&self.source[begin..begin + length], self.line));
        self.skip_to(begin + length + close.len());
        self.comment_end = None;
    }

    /// The number of hashes, if a raw string begins here and not a name or the middle of one.
    fn raw_string_hashes(&self) -> Option<usize> {
        let inside = &self.source.as_bytes()[self.at + 1..];
        let hashes = inside.iter().take_while(|byte| **byte == b'#').count();
        if inside.get(hashes) != Some(&b'"') {
            return None;
        }
        let mut before = self.source.as_bytes()[..self.at].iter().rev();
        let last = match before.next() {
            Some(b'b' | b'c') => before.next(),
            other => other,
        };
        let is_in_a_name = last.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
        (!is_in_a_name).then_some(hashes)
    }

    /// `'"'` is a character, and `'a` the begin of a lifetime.
    fn length_of_character(&self) -> usize {
        let rest = &self.source[self.at + 1..];
        let mut inside = rest.chars();
        match (inside.next(), inside.next()) {
            // The quote of `'\''` is the third byte.
            (Some('\\'), _) => rest.as_bytes().iter().skip(2).position(|byte| *byte == b'\'').map_or(1, |at| at + 4),
            (Some(quoted), Some('\'')) => quoted.len_utf8() + 2,
            _ => 1,
        }
    }

    fn skip_to(&mut self, end: usize) {
        let end = end.min(self.source.len());
        self.line += self.source[self.at..end].matches('\n').count();
        self.at = end;
    }
}

fn words(text: &str, begin: usize) -> Vec<Word> {
    let lines = text.split('\n').zip(begin..);
    lines
        .flat_map(|(line, number)| {
            let words = line.split(|char: char| !char.is_alphabetic()).filter(|word| !word.is_empty());
            words.map(move |word| Word { text: word.to_lowercase(), line: number })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::texts;

    /// Each text as its words, and the line of its first.
    fn read(source: &str) -> Vec<(String, usize)> {
        let joined = |text: Vec<super::Word>| {
            let line = text.first().map_or(0, |word| word.line);
            (text.into_iter().map(|word| word.text).collect::<Vec<_>>().join(" "), line)
        };
        texts(source).into_iter().map(joined).filter(|(text, _)| !text.is_empty()).collect()
    }

    fn told(text: &str, line: usize) -> (String, usize) {
        (text.to_owned(), line)
    }

    #[test]
    fn comments_are_read() {
        assert_eq!(
            read("//! One.\n\n/// Two,\n/// three.\nfn a() {} // Four\n// five\n"),
            [told("one", 1), told("two three", 3), told("four five", 5)]
        );
        assert_eq!(
            read("fn a() {\n  /* One /* two */\n  three */ b()\n}\n// Four\n"),
            [told("one two three", 2), told("four", 5)]
        );
    }

    #[test]
    fn strings_are_read() {
        assert_eq!(read("f(\"One\\ntwo\", \"three \\\n   four\");\n"), [told("one two", 1), told("three four", 1)]);
        assert_eq!(
            read("f(r\"a\\\", r#\"b \"c\"\n d\"#, br\"e\", \"// f\");\n"),
            [told("a", 1), told("b c d", 1), told("e", 2), told("f", 2)]
        );
    }

    #[test]
    fn code_is_not_read() {
        assert_eq!(
            read("fn he<'a>(c: &'a char) -> bool { *c == '\"' || *c == '\\'' || *c == '\\u{22}' || r == her }\n"),
            []
        );
        assert_eq!(read("let c = b'\"'; // his\n"), [told("his", 1)]);
    }
}
