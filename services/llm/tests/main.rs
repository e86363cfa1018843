//! Models over the mesh.

mod budgets;
mod over_the_mesh;
mod pictures_over_the_mesh;
mod several_backends;
