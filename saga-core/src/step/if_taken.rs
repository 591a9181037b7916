use std::{any::type_name, fmt, marker::PhantomData};

use super::{Codec, Step, StepOptions};

/// A step that stands in an arm of a choice, as the step that it is to those behind the choice: its output is `None`
/// where the arm was not taken.
///
/// `Output<IfTaken<call_courier>>` is a parameter of a later step, and `.step_after::<bill, IfTaken<call_courier>>(..)`
/// reads it for a mapping. Of a step that is done for each item of a list it is `IfTaken<Each<pack_parcel>>`.
pub struct IfTaken<T>(PhantomData<fn(T)>);

impl<T: Step> Step for IfTaken<T> {
    type Input = T::Input;
    type Output = Option<T::Output>;
    type Params = ();

    const NAME: &'static str = T::NAME;
    const OPTIONS: StepOptions = T::OPTIONS;
    const INPUT: Codec<Self::Input> = T::INPUT;
    const OUTPUT: Codec<Self::Output> = Codec::new(
        |output| output.as_ref().map_or_else(|| Ok(b"null".to_vec()), |output| T::OUTPUT.encode(output)),
        |bytes| T::OUTPUT.decode(bytes).map(Some),
    );
    const IS_EACH: bool = T::IS_EACH;
    const WHEN_PASSED_BY: Option<fn() -> Self::Output> = Some(|| None);
}

impl<T> fmt::Debug for IfTaken<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IfTaken<{}>", type_name::<T>())
    }
}
