//! A step that is done for each item of a list: how many at once, what it joins, what is undone and in which order.

mod building;
mod depot;
mod items;
