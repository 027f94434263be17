// What is built where libfabric's headers are not.
#include "src/base/error.h"
#include "transports/ofi/transport.h"

namespace catenary::ofi {

const char* absence() noexcept {
  return "this Catenary was built without libfabric; install libfabric-dev and build again";
}

std::unique_ptr<Transport> make_transport(const TransportContext&) {
  throw_error(ErrorCode::kInvalidUsage, "%s", absence());
}

std::unique_ptr<Transport> make_decorated_transport(const TransportContext& context,
                                                    const PortDecorator&) {
  return make_transport(context);
}

}  // namespace catenary::ofi
