//! The stored form of the list that a `for_each` step reads and writes: a JSON array of its items, each in its own codec.

use serde_json::value::RawValue;

use crate::step::{Codec, CodecError};

/// The stored forms of the items of a stored list.
pub(crate) fn items_of(list: &[u8]) -> Result<Vec<&RawValue>, String> {
    serde_json::from_slice(list).map_err(|error| format!("its list does not decode: {error}"))
}

/// The stored list of these stored items.
pub(crate) fn list_of<'a>(items: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut list = vec![b'['];
    for (number, item) in items.into_iter().enumerate() {
        if number > 0 {
            list.push(b',');
        }
        list.extend_from_slice(item);
    }
    list.push(b']');
    list
}

/// Encodes a list, item by item.
pub(crate) fn encode_list<V>(codec: Codec<V>, list: &[V]) -> Result<Vec<u8>, CodecError> {
    let items = list.iter().map(|item| codec.encode(item)).collect::<Result<Vec<_>, _>>()?;
    Ok(list_of(items.iter().map(Vec::as_slice)))
}

/// Decodes a list, item by item.
pub(crate) fn decode_list<V>(codec: Codec<V>, bytes: &[u8]) -> Result<Vec<V>, CodecError> {
    let items: Vec<&RawValue> = serde_json::from_slice(bytes).map_err(|error| CodecError::reading::<Vec<V>>(&error))?;
    items.into_iter().map(|item| codec.decode(item.get().as_bytes())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::step::codec;

    #[test]
    fn a_list_is_stored_as_the_list_of_its_items() {
        let check = |list: Vec<Option<u32>>, stored: &str| {
            let bytes = encode_list(codec(), &list).unwrap();
            assert_eq!(bytes, stored.as_bytes());
            assert_eq!(decode_list::<Option<u32>>(codec(), &bytes).unwrap(), list);
            let items = items_of(&bytes).unwrap();
            assert_eq!(list_of(items.iter().map(|item| item.get().as_bytes())), bytes);
        };
        check(vec![], "[]");
        check(vec![Some(1)], "[1]");
        check(vec![None, Some(2), None], "[null,2,null]");
        assert!(decode_list::<String>(codec(), b"[1]").is_err());
    }
}
