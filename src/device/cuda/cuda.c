/* Stands for the CUDA backend in a build without CUDA: knows its name and says how to get it. */
#include "device/backend.h"

const g3_device_ops g3_cuda_ops = {.name = "cuda"};

static g3_status cuda_open(g3_device *dev) {
  return G3_FAIL(G3_EUNSUPPORTED,
                 "device '%s' was asked for, but this gpt3d was built without CUDA; use --device "
                 "cpu",
                 dev->ops->name);
}

static void cuda_close(g3_device *dev) {
  dev->impl = NULL;
}

const g3_backend g3_cuda_backend = {&g3_cuda_ops, cuda_open, cuda_close};
