//! JSON in one spelling.

use serde_json::Value;

/// The JSON without white space, and with the members of each object sorted by name. `None` if it is not valid.
///
/// Numbers stay as they are written, because a parser rounds some that differ to the same one. Members of one name stay in their
/// order, because it depends on the parser which of them counts.
pub(super) fn canonical(json: &[u8]) -> Option<String> {
    let text = str::from_utf8(json).ok()?;
    // This checks that it is valid, and limits how deep it is nested.
    serde_json::from_str::<Value>(text).ok()?;
    Reader { rest: text.trim_ascii_start() }.value()
}

/// Reads JSON that is known to be valid. The rest never begins with white space.
struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    fn value(&mut self) -> Option<String> {
        match self.rest.as_bytes().first()? {
            b'{' => {
                let mut members = self.list(Self::member)?;
                // Members of one name keep their order.
                members.sort_by(|(name, _), (other, _)| name.cmp(other));
                let members = members.into_iter().map(|(name, value)| format!("{}:{value},", quoted(name)));
                Some(format!("{{{}}}", members.collect::<String>()))
            }
            b'[' => {
                let items = self.list(Self::value)?.into_iter().map(|item| item + ",");
                Some(format!("[{}]", items.collect::<String>()))
            }
            b'"' => self.string().map(quoted),
            _ => {
                let ends = |end: char| matches!(end, ',' | ']' | '}') || end.is_ascii_whitespace();
                Some(self.take(self.rest.find(ends).unwrap_or(self.rest.len())).to_owned())
            }
        }
    }

    fn member(&mut self) -> Option<(String, String)> {
        let name = self.string()?;
        self.take(":".len());
        Some((name, self.value()?))
    }

    /// What stands between two brackets.
    fn list<T>(&mut self, item: fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let mut items = Vec::new();
        self.take("[".len());
        while !self.rest.starts_with([']', '}']) {
            items.push(item(self)?);
            if self.rest.starts_with(',') {
                self.take(",".len());
            }
        }
        self.take("]".len());
        Some(items)
    }

    /// A string without its quotes and escapes.
    fn string(&mut self) -> Option<String> {
        let mut is_escaped = false;
        let is_end = |byte: u8| {
            let is_end = byte == b'"' && !is_escaped;
            is_escaped = byte == b'\\' && !is_escaped;
            is_end
        };
        let inside = self.rest.bytes().skip(1).position(is_end)?;
        serde_json::from_str(self.take(inside + "\"\"".len())).ok()
    }

    /// Takes these bytes, and drops the white space behind them.
    fn take(&mut self, bytes: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(bytes);
        self.rest = rest.trim_ascii_start();
        taken
    }
}

fn quoted(text: String) -> String {
    Value::String(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(json: &str, expected: Option<&str>) {
        assert_eq!(canonical(json.as_bytes()).as_deref(), expected, "{json}");
    }

    #[test]
    fn white_space_and_the_order_of_members_are_gone() {
        check("\r\n { \"b\" : [ 1 , { } , [ ] ] , \"a\" : null }\t", Some(r#"{"a":null,"b":[1,{},[],],}"#));
        check(r#"{"a!":{"d":true,"c":false},"a":"x"}"#, Some(r#"{"a":"x","a!":{"c":false,"d":true,},}"#));
        check(" 7 ", Some("7"));
        check(r#""""#, Some(r#""""#));
    }

    #[test]
    fn a_string_has_one_spelling() {
        check(r#"{"\u0061\/":"\"}, ]\\"}"#, Some(r#"{"a/":"\"}, ]\\",}"#));
        check(r#"["\ud83d\ude00", "ä"]"#, Some("[\"\u{1f600}\",\"ä\",]"));
    }

    #[test]
    fn numbers_stay_as_they_are_written() {
        for number in ["1.5", "1.50", "15e-1", "-0", "9007199254740993.0", "123456789012345678901"] {
            check(&format!("{{\"b\":{number} ,\"a\":0}}"), Some(&format!("{{\"a\":0,\"b\":{number},}}")));
        }
        check("1e999", None);
    }

    #[test]
    fn members_of_one_name_stay_in_their_order() {
        check(r#"{"b":0,"a":2,"\u0061":1}"#, Some(r#"{"a":2,"a":1,"b":0,}"#));
    }

    #[test]
    fn what_is_not_valid_has_no_other_spelling() {
        for json in ["", "{", "[1,]", "[1 2]", "{} {}", "\"\\ud83d\"", "{\"a\" 1}"] {
            check(json, None);
        }
        check(&"[".repeat(100_000), None);
        let nested = |depth| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(canonical(nested(100).as_bytes()).is_some());
        check(&nested(100_000), None);
        assert_eq!(canonical(b"\"\xff\""), None);
    }
}
