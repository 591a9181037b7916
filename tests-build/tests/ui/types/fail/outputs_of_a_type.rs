// rule: output-of-type
use saga_core::{Output, Outputs, StepError, saga_compensation};

#[saga_compensation]
async fn release(
    _order: u64,
    Outputs(names): Outputs<String>,
    gift: Option<Output<Vec<u8>>>,
) -> Result<(), StepError> {
    let _lengths: Vec<usize> = names.iter().map(String::len).chain(gift.map(|gift| gift.0.len())).collect();
    Ok(())
}

fn main() {}
