/* Which instruction set the vectorised kernels use. Files in kernels/ are compiled once for each of
 * x86-64-v2, -v3 (AVX2) and -v4 (AVX-512), with G3_ISA = v2, v3, v4; each defines one const table
 * of functions under a name that ends in it. Kernels are serial: threads are shared out by their
 * callers. */
#ifndef G3_DEVICE_CPU_ISA_H
#define G3_DEVICE_CPU_ISA_H

typedef enum { G3_ISA_V2, G3_ISA_V3, G3_ISA_V4, G3_ISA_COUNT } g3_isa;

/* The best set that this processor has, or the lower one that the environment's GPT3D_ISA=v2|v3|v4
 * names. The same answer on each call. */
g3_isa g3_cpu_isa(void);

/* G3_KERNEL(name) is name_v2, name_v3 or name_v4 in a file of kernels/. */
#define G3_KERNEL_JOIN_(name, isa) name##_##isa
#define G3_KERNEL_JOIN(name, isa) G3_KERNEL_JOIN_(name, isa)
#define G3_KERNEL(name) G3_KERNEL_JOIN(name, G3_ISA)

#endif
