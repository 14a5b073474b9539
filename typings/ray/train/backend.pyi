class Backend:
    share_cuda_visible_devices: bool

class BackendConfig:
    @property
    def backend_cls(self) -> type[Backend]: ...
