//! The embedded bus.

mod native {
    use crate::harness::World;
    use tg_mesh::bus::Mode;

    crate::suite::suite!(World::embedded(Mode::Native));
}

mod interop {
    use crate::harness::World;
    use tg_mesh::bus::Mode;

    crate::suite::suite!(World::embedded(Mode::Interop));
}
