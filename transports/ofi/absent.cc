// What is built where libfabric's headers are not.
#include "src/base/error.h"
#include "transports/ofi/transport.h"

namespace catenary::ofi {

bool is_built() noexcept { return false; }

std::unique_ptr<Transport> make_transport(const TransportContext&) {
  throw_error(ErrorCode::kInvalidUsage,
              "this Catenary was built without libfabric; install libfabric-dev and build again");
}

std::unique_ptr<Transport> make_decorated_transport(const TransportContext& context,
                                                    const PortDecorator&) {
  return make_transport(context);
}

}  // namespace catenary::ofi
