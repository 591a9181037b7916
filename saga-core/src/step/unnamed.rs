use std::marker::PhantomData;

use super::{Codec, Step, no_codec};

/// Stands for the step of an `Output<..>` that names a type instead, so that the program has no second mistake.
#[doc(hidden)]
#[derive(Debug)]
pub struct Unnamed<T>(PhantomData<fn(T)>);

impl<T: Send + 'static> Step for Unnamed<T> {
    type Input = ();
    type Output = T;
    const NAME: &'static str = "unnamed";
    const INPUT: Codec<Self::Input> = no_codec();
    const OUTPUT: Codec<Self::Output> = no_codec();
}
