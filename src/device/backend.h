/* How g3_device_open reaches a backend. For the folders of backends only. */
#ifndef G3_DEVICE_BACKEND_H
#define G3_DEVICE_BACKEND_H
#include "device/device.h"

typedef struct {
  const g3_device_ops *ops;
  /* Sets dev->impl and whatever else the backend needs; dev->ops and dev->threads are set. After a
   * failure nothing is left to close. */
  g3_status (*open)(g3_device *dev);
  void (*close)(g3_device *dev);
} g3_backend;

/* Each defined in its backend's folder; without CUDA the second refuses to open. */
extern const g3_backend g3_cpu_backend, g3_cuda_backend;

#endif
