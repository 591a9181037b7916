use std::{
    collections::{HashMap, hash_map::Entry},
    fmt,
};

use serde::de::DeserializeOwned;

use super::{Catalogue, Order, Product, Source, check, object::Object};

/// A line longer than this is refused unread.
const LINE_BYTES_MAX: usize = 1 << 20;

/// An order and the line that it stands on.
#[derive(Debug)]
pub struct Numbered {
    /// The line, counted from 1.
    pub line: usize,
    /// The order.
    pub order: Order,
}

/// A line that was not taken, and why.
#[derive(Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The file, as messages name it.
    pub file: String,
    /// The line, counted from 1.
    pub line: usize,
    /// A sentence that says what is wrong.
    pub sentence: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.sentence)
    }
}

/// What reading the orders gave: every line that is not blank is in one of the three.
#[derive(Debug, Default)]
pub struct Intake {
    /// The orders to run, each once.
    pub orders: Vec<Numbered>,
    /// Lines that said an order again, word for word.
    pub repeated: usize,
    /// Lines that were not taken.
    pub refused: Vec<Refusal>,
}

/// Reads and checks orders, one a line.
pub fn read_orders(source: &Source, bytes: &[u8], catalogue: &Catalogue) -> Intake {
    let mut intake = Intake::default();
    let mut seen: HashMap<String, usize> = HashMap::new();
    for (line, read) in json_lines::<Order>(bytes, "an order") {
        let taken = read.and_then(|order| match seen.entry(order.order_id.clone()) {
            Entry::Vacant(entry) => {
                check(&order, catalogue)?;
                entry.insert(intake.orders.len());
                Ok(Some(order))
            }
            Entry::Occupied(entry) => {
                let first = &intake.orders[*entry.get()];
                if first.order == order {
                    return Ok(None);
                }
                Err(format!("order {} stands on line {} with another content", order.order_id, first.line))
            }
        });
        match taken {
            Ok(Some(order)) => intake.orders.push(Numbered { line, order }),
            Ok(None) => intake.repeated += 1,
            Err(sentence) => intake.refused.push(Refusal { file: source.to_string(), line, sentence }),
        }
    }
    intake
}

/// Reads and checks products, one a line.
pub fn read_products(source: &Source, bytes: &[u8]) -> (Vec<Product>, Vec<Refusal>) {
    let mut products: Vec<Product> = Vec::new();
    let mut refused = Vec::new();
    let mut seen: HashMap<String, usize> = HashMap::new();
    for (line, read) in json_lines::<Product>(bytes, "a product") {
        let taken = read.and_then(|product| {
            let sku = &product.sku;
            if sku.is_empty() {
                return Err("a product needs a sku".to_owned());
            }
            if product.in_stock < 0 {
                return Err(format!("product {sku} has {} in stock; it cannot be negative", product.in_stock));
            }
            match seen.entry(sku.clone()) {
                Entry::Occupied(entry) if products[*entry.get()] == product => Ok(None),
                Entry::Occupied(_) => Err(format!("product {sku} came before with another content")),
                Entry::Vacant(entry) => {
                    entry.insert(products.len());
                    Ok(Some(product))
                }
            }
        });
        match taken {
            Ok(product) => products.extend(product),
            Err(sentence) => refused.push(Refusal { file: source.to_string(), line, sentence }),
        }
    }
    (products, refused)
}

/// The lines that are not blank, each decoded or with a sentence that says why not.
fn json_lines<T: DeserializeOwned>(bytes: &[u8], what: &str) -> impl Iterator<Item = (usize, Result<T, String>)> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    bytes.split(|byte| *byte == b'\n').zip(1..).filter(|(line, _)| !line.trim_ascii().is_empty()).map(
        move |(line, number)| {
            let read = if line.len() > LINE_BYTES_MAX {
                Err(format!("the line has {} bytes; at most {LINE_BYTES_MAX} are read", line.len()))
            } else {
                serde_json::from_slice(line).map(|Object(read)| read).map_err(|error| {
                    let text = error.to_string();
                    // The decoder sees one line only, so its "line 1" would mislead.
                    let reason = text.split(" at line ").next().unwrap_or(&text);
                    format!("not {what} in JSON: {reason} (column {})", error.column())
                })
            };
            (number, read)
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: Source = Source::Shipped("some.jsonl", "");

    fn line(id: &str, quantity: i64, total: i64) -> String {
        format!(
            r#"{{"order_id":"{id}","customer":"C","placed_on":"2024-01-01","ship_to":{{"name":"N","city":"C","country":"L"}},"freight_cents":1,"items":[{{"sku":"TEA","quantity":{quantity},"unit_price_cents":10,"discount":0.0}}],"total_cents":{total}}}"#
        )
    }

    fn read(text: &str) -> Intake {
        read_orders(&FILE, text.as_bytes(), &Catalogue::from_iter(["TEA"]))
    }

    #[test]
    fn what_is_refused_names_file_and_line_and_the_others_run() {
        let text = [
            line("A-1", 1, 10),
            String::new(),
            r#"{"order_id": 7}"#.to_owned(),
            line("A-2", -1, -10),
            line("A-3", 2, 21),
            line("A-1", 2, 20),
            line("A-1", 1, 10),
            "{".to_owned(),
            line("A-4", 3, 30) + "\r",
        ]
        .join("\n");
        let intake = read(&text);
        let taken: Vec<_> = intake.orders.iter().map(|n| (n.line, n.order.order_id.as_str())).collect();
        assert_eq!(taken, [(1, "A-1"), (9, "A-4")]);
        assert_eq!(intake.repeated, 1);
        let said: Vec<_> = intake.refused.iter().map(ToString::to_string).collect();
        assert_eq!(
            said,
            [
                "some.jsonl:3: not an order in JSON: invalid type: integer `7`, expected a string (column 14)",
                "some.jsonl:4: order A-2 asks for -1 of TEA; the quantity must be positive",
                "some.jsonl:5: order A-3 says a total of 21 cents, but its items add up to 20",
                "some.jsonl:6: order A-1 stands on line 1 with another content",
                "some.jsonl:8: not an order in JSON: EOF while parsing an object (column 1)",
            ]
        );
    }

    #[test]
    fn an_array_is_no_order_whatever_stands_in_it() {
        let whole = r#"["A-1","C","2024-01-01",{"name":"N","city":"C","country":"L"},1,[{"sku":"TEA","quantity":1,"unit_price_cents":10,"discount":0.0}],10]"#;
        let address = line("A-2", 1, 10).replace(r#"{"name":"N","city":"C","country":"L"}"#, r#"["N","C","L"]"#);
        let item = line("A-3", 1, 10)
            .replace(r#"{"sku":"TEA","quantity":1,"unit_price_cents":10,"discount":0.0}"#, r#"["TEA",1,10,0.0]"#);
        let intake = read(&[whole.to_owned(), address, item, line("A-4", 1, 10)].join("\n"));
        assert_eq!((intake.orders.len(), intake.refused.len()), (1, 3));
        for refused in &intake.refused {
            assert!(refused.sentence.contains("invalid type: sequence, expected an object"), "{refused}");
        }
    }

    #[test]
    fn an_order_id_whose_first_line_was_refused_is_still_free() {
        let intake = read(&format!("{}\n{}", line("A-1", 1, 99), line("A-1", 1, 10)));
        assert_eq!((intake.orders.len(), intake.refused.len()), (1, 1));
    }

    #[test]
    fn bytes_that_are_no_text_and_lines_without_end_are_refused() {
        let mut bytes = b"\xff\xfe{}\n".to_vec();
        bytes.extend(vec![b'x'; LINE_BYTES_MAX + 1]);
        let intake = read_orders(&FILE, &bytes, &Catalogue::default());
        assert_eq!(intake.refused.len(), 2);
        assert!(intake.refused[1].sentence.contains("at most 1048576 are read"), "{}", intake.refused[1]);
    }

    #[test]
    fn products_are_read_once_each() {
        let tea = r#"{"sku":"TEA","name":"Tea","unit_price_cents":1,"in_stock":5,"discontinued":false}"#;
        let text = format!("{tea}\n{tea}\n{}\n{}\nnonsense", tea.replace(":5,", ":6,"), tea.replace(":5,", ":-5,"));
        let (products, refused) = read_products(&FILE, text.as_bytes());
        assert_eq!(products.len(), 1);
        let said: Vec<_> = refused.iter().map(ToString::to_string).collect();
        assert_eq!(said.len(), 3, "{said:?}");
        assert_eq!(said[0], "some.jsonl:3: product TEA came before with another content");
        assert_eq!(said[1], "some.jsonl:4: product TEA has -5 in stock; it cannot be negative");
    }

    #[test]
    fn the_samples_that_the_program_brings_along_are_all_good() {
        let products = Source::SAMPLE_PRODUCTS.read().expect("it is in the program");
        let (products, refused) = read_products(&Source::SAMPLE_PRODUCTS, &products);
        assert_eq!(refused, []);
        let catalogue = products.into_iter().map(|product| product.sku).collect();
        let orders = Source::SAMPLE_ORDERS.read().expect("it is in the program");
        let intake = read_orders(&Source::SAMPLE_ORDERS, &orders, &catalogue);
        assert_eq!(intake.refused, []);
        assert!(intake.orders.len() >= 120, "only {} orders", intake.orders.len());
    }
}
