//! Versions of a definition: side by side, refused when they changed, waiting where nobody knows them, and moved.

mod arms;
mod choices;
mod courier;
mod moving;
mod shop;
mod side_by_side;
mod signals;
mod sleeps;
mod stuck_inputs;
