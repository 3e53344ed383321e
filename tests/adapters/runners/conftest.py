from tests.support.bundles import bench, make_bench

__all__ = ["bench", "make_bench"]
