// targets: 90a 100a
// Edits of tensor maps in memory, for targets that carry architecture-specific instructions.

extern "C" __global__ void edit_map(unsigned long long *map, unsigned long long address, unsigned n) {
    asm volatile("tensormap.replace.tile.global_address.global.b1024.b64 [%0], %1;" ::"l"(map), "l"(address));
    asm volatile("tensormap.replace.tile.rank.global.b1024.b32 [%0], %1;" ::"l"(map), "r"(n));
    asm volatile("tensormap.replace.tile.box_dim.global.b1024.b32 [%0], 1, %1;" ::"l"(map), "r"(n));
    asm volatile("tensormap.replace.tile.elemtype.global.b1024.b32 [%0], 3;" ::"l"(map));
}
