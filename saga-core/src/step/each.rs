use std::{any::type_name, fmt, marker::PhantomData};

use serde_json::value::RawValue;

use super::{Codec, CodecError, Step, StepOptions};

/// A step that a saga does for each item of a list, as the step that it is to those behind it: its output is the list
/// of what the items gave, in the order of the list.
///
/// `Output<Each<pack_parcel>>` is a parameter of a later step, and `.step_after::<ship, Each<pack_parcel>>(..)` reads
/// it for a mapping.
pub struct Each<T>(PhantomData<fn(T)>);

impl<T: Step> Step for Each<T> {
    type Input = Vec<T::Input>;
    type Output = Vec<T::Output>;
    type Params = ();

    const NAME: &'static str = T::NAME;
    const OPTIONS: StepOptions = T::OPTIONS;
    const INPUT: Codec<Self::Input> = Codec::new(|list| encode(T::INPUT, list), |bytes| decode(T::INPUT, bytes));
    const OUTPUT: Codec<Self::Output> = Codec::new(|list| encode(T::OUTPUT, list), |bytes| decode(T::OUTPUT, bytes));
    const IS_EACH: bool = true;
}

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

fn encode<V>(codec: Codec<V>, list: &[V]) -> Result<Vec<u8>, CodecError> {
    let items = list.iter().map(|item| codec.encode(item)).collect::<Result<Vec<_>, _>>()?;
    Ok(list_of(items.iter().map(Vec::as_slice)))
}

fn decode<V>(codec: Codec<V>, bytes: &[u8]) -> Result<Vec<V>, CodecError> {
    let items: Vec<&RawValue> = serde_json::from_slice(bytes).map_err(|error| CodecError::reading::<Vec<V>>(&error))?;
    items.into_iter().map(|item| codec.decode(item.get().as_bytes())).collect()
}

impl<T> fmt::Debug for Each<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Each<{}>", type_name::<T>())
    }
}

#[cfg(all(test, feature = "macros"))]
mod tests {
    use super::*;
    use crate::StepError;
    use crate::saga_step;

    #[saga_step(no_compensation)]
    async fn weigh(_name: String) -> Result<Option<u32>, StepError> {
        Ok(None)
    }

    #[test]
    fn a_list_is_stored_as_the_list_of_its_items() {
        let check = |list: Vec<Option<u32>>, stored: &str| {
            let bytes = <Each<weigh> as Step>::OUTPUT.encode(&list).unwrap();
            assert_eq!(bytes, stored.as_bytes());
            assert_eq!(<Each<weigh> as Step>::OUTPUT.decode(&bytes).unwrap(), list);
            let items = items_of(&bytes).unwrap();
            assert_eq!(list_of(items.iter().map(|item| item.get().as_bytes())), bytes);
        };
        check(vec![], "[]");
        check(vec![Some(1)], "[1]");
        check(vec![None, Some(2), None], "[null,2,null]");
        assert!(<Each<weigh> as Step>::INPUT.decode(b"[1]").is_err());
    }
}
